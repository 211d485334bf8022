// Package privilege finds out which rights a role needs to run a statement. It asks the server that will check them.
//
// # Nouns
//
//   - Privilege: one right of a GRANT, on one object.
//   - Needs: all privileges that the statements of one purpose need.
//   - Blind spot: code that runs with a statement and cannot be examined, such as a trigger.
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
//   - Nothing is executed and nothing is left behind: the function is made in a savepoint that is always rolled
//     back.
//   - The role that asks needs no right to the objects that the statement reads or writes. It only needs USAGE on
//     the schemas that the statement names and the right to make temporary functions.
//
// # Left out
//
// The actions of a function or a trigger when it runs, and utility commands (CALL, LOCK), which a function body of
// this kind cannot contain.
package privilege
