// Package modules tests the promises about the modules of this tree: see docs/decisions/0054-modules.md. It has only
// tests.
//
//	the tree ──▶ a copy ──▶ tools/release ──▶ tags ──▶ a module proxy of files ──▶ go, as a user runs it
//
// Nouns: a release is the proxy with all modules of the tree in one version; a user is a module of someone else.
//
// Invariants: the proxy has what a tag of that version would have. Each run uses another version, which leaves the
// machine's module cache after the tests.
//
// Left out: which package may import which. See package layout.
package modules
