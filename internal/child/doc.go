// Package child starts the programs that a configuration names, and ends them with everything they started.
//
// # Nouns
//
//   - Program: the command, and its directory, environment and account.
//   - Process: one run of a program, with the three pipes to it.
//   - Redactor: takes secrets out of the lines of a program, even if a secret goes on over the end of a line.
//
// # Invariants
//
//   - There is no shell. A program has PATH, HOME, LANG, LC_ALL, TZ and TMPDIR of this process, and the variables of its
//     configuration. It has no others. It has no file that this process opened except its three pipes. It leads a
//     session, so it has no terminal.
//   - Once a process has ended, its group is killed, and its output ends within ExitTimeout. A process that left the
//     group may live on, and is not waited for.
//   - Quotes of a program are bounded, printable, and without its secrets.
//
// # Left out
//
// Limits on the resources of a child. On systems without process groups, only the child itself is ended.
package child
