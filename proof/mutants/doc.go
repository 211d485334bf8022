// Command mutants switches off one protection at a time and checks that a named test notices.
//
//	make mutants                     all of them
//	make mutants ARGS='-run epoch'   those whose name or killer matches
//	make mutants ARGS=-ci            those that CI runs: see ci.go
//
// # Nouns
//
//   - Mutant: the program with one protection switched off, as a change of its text: the program that ships has no
//     switches.
//   - Killer: the test that must fail on the mutant, and pass on the program.
//
// # Diagram
//
//	table ─► changed copies in a temporary directory ─► go test -overlay ─► FAIL: killed
//	                                                                     ─► ok:   survived, an error
//
// # Invariants
//
//   - A change applies to a text that is in its file exactly once. When the code moves, the mutant must follow: else
//     a test of this package fails.
//   - A mutant that does not compile is an error, not a kill. So is one whose killer ends other than by failing (a
//     time-out, another test).
//   - CI runs one mutant for each invariant of a package; the others run before a release. All of them must follow
//     the code at all times.
//   - The table in docs/reliability.md is this one.
//
// # Left out
//
// Mutants made by rule (operators turned round, statements removed): they count what is tested, not whether the
// protections work.
package main
