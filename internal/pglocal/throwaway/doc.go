// Package throwaway runs programs in a directory that disappears together with the process that made it.
//
// Nouns: a Dir is a temporary directory. A Process is a long-running program in it. The guard is a small shell that
// waits for the owner's end.
//
//	owner (test binary, demo) ──pipe──▶ guard (sh, same user as the programs)
//	  │ starts                            │ end of file: the owner closed the Dir, exited or was killed
//	  ▼                                   ▼
//	postgres, pgbouncer  ◀──SIGQUIT── pids/*, then rm -rf of the directory
//
// Invariants:
//
//   - Nothing outlives the owner. The pipe closes on Close, on os.Exit, on a panic and on SIGKILL alike, and the
//     same guard cleans up in each case. The owner needs no handler.
//   - As root the programs run as an unprivileged user (postgres, else nobody), since PostgreSQL refuses root. That
//     user makes the directory, so that it is certain to be able to reach it.
//   - The programs run in sessions of their own: Ctrl-C in a terminal reaches the owner, which decides.
//
// The package knows nothing of PostgreSQL. It needs a Unix with sh, mktemp, sleep and rm; elsewhere New returns an
// error.
package throwaway
