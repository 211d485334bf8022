// Package live is the view of `status --watch` on a terminal: it looks every second, shows what needs attention first,
// and lets an operator pause or retry a process.
//
// # Nouns
//
//   - Backend (backend.go): what the view asks of the database and has done there, as functions.
//   - model (model.go, keys.go): the state of the view. It changes by messages only: a look, a key, a new size.
//   - trace (trace.go): what was seen of a process in the last two minutes, from which come its rate, its curve and the
//     time that it still needs.
//   - fleet (fleet.go) and detail (detail.go): the two pages, of all processes and of one.
//   - dialog (dialog.go): a decision on its way: first its dry run, then the reason, then the result.
//
// # Invariants
//
//   - One look is on its way at a time. A database that is away leaves the last look on the screen, and since when.
//   - A decision is carried out only after its dry run was shown, with a reason, and only if the cursor is still where
//     the dry run saw it, as with --expect.
//   - A payload is read and shown only on a key.
//   - No frame is wider or higher than the terminal.
//   - The terminal is as it was before when Run returns, after a panic, too.
//
// # Left out
//
// What is printed line by line is in package screen.
package live
