// Package privilege says what a role must be granted to run a statement, in the
// words of the server that will check it.
//
// # Nouns
//
//   - Privilege: what one right of a GRANT gives, on one object.
//   - Needs: all that the statements of one purpose ask for.
//   - Blind spot: code that runs with a statement and of which nothing can be
//     told, such as a trigger.
//
// # Diagram
//
//	statement ─► CREATE FUNCTION pg_temp.… BEGIN ATOMIC statement END ─► ROLLBACK
//	                             │
//	                             ├─► pg_proc.prosqlbody   relations, rights, columns: what the executor will check
//	                             └─► pg_depend            schemas, functions, sequences
//
// # Invariants
//
//   - Nothing is executed and nothing is left behind: the function is made in a
//     savepoint that is always rolled back.
//   - The role that asks needs no right to what the statement reads or writes, only
//     USAGE on the schemas it names and the right to make temporary functions.
//
// # Left out
//
// What a function or a trigger does when it runs, and utility commands (CALL,
// LOCK), which no function body of this kind may hold.
package privilege
