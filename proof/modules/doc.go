// Package modules holds the promises about the modules of this tree: see docs/decisions/0054-modules.md. It has tests
// alone.
//
//	the tree ──▶ a copy ──▶ tools/release ──▶ tags ──▶ a module proxy of files ──▶ go, as a user runs it
//
// Nouns: a release is the proxy with all modules of the tree in one version; a user is a module of someone else.
//
// Invariants: what the proxy has is what a tag of that version would have. The version is another one each time, and
// leaves the machine's module cache after the tests.
//
// Left out: which package may import which. See package layout.
package modules
