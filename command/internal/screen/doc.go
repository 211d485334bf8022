// Package screen prints for people: in the width of their terminal, or 80 columns, and with colours on a terminal only.
//
// # Nouns
//
//   - Page (page.go): where people read, how wide it is, and whether it shows colours.
//   - Grid (grid.go): a table that fits into the page. It shortens names first. Then it folds its last column.
//   - Bar (bar.go): one line at the bottom of a terminal, below the log, for the progress of a drain.
//
// # Invariants
//
//   - Nothing that others wrote reaches a terminal unseen: every text goes through package visible.
//   - No line is wider than the page, except for a word, a command or SQL that cannot be broken.
//   - What is printed for programs (JSON) is not in this package.
//
// # Left out
//
// The view that repeats itself is in package live. The JSON is in package daemon, beside the types.
package screen
