// Command mutants switches off one protection at a time and checks that a named test notices.
//
//	make mutants                     all of them
//	make mutants ARGS='-run epoch'   those whose name or killer matches
//	make mutants ARGS=-ci            those that CI runs
//
// # Nouns
//
//   - Mutant: the program with one protection switched off. The program that ships has no switches.
//   - Change: a declaration by its name ("cursor.Lease.Advance"), a piece of its syntax tree or of its SQL, and what
//     comes in the place of that. Files, formatting and comments do not count.
//   - Killer: the test that must fail on the mutant, and pass on the program.
//
// # Diagram
//
//	table ─► changed copies in a temporary directory ─► go test -overlay ─► FAIL: killed
//	                                                                     ─► ok:   survived, an error
//
// # Invariants
//
//   - A change has exactly one match in its declaration, or says which of several it means. Else a test of this
//     package fails, and names the declarations in which the change would have a match.
//   - A mutant that does not compile is an error and not a kill. So is one whose killer ends other than by failing (a
//     time-out, another test).
//   - CI runs one mutant for each invariant of a package: those marked inCI in the table. The others run before a
//     release, but all of them must match the code at all times.
//   - The table in docs/reliability.md is this one.
//
// # Which mutants there are
//
// The core has one for each protection: lease, cursor, fence, loop, and what happens when a server changes. A sink has
// one for each of its promises, and not one for each line that serves it. Wordings of messages and of what status and
// doctor print have tests, and no mutants.
//
// # Left out
//
// Mutants made by rule (operators turned round, statements removed): they count what is tested, not whether the
// protections work.
package main
