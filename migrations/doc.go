// Package migrations holds the tables of the dispatcher as numbered files of plain SQL, and applies them.
//
// # Nouns
//
//   - Migration: one file, with the way up and the way down.
//   - Schema: the schema of the tables. It is made if it is missing.
//   - Version table: ordered_dispatcher_migration in the same schema. It records which migrations are applied.
//
// # Invariants
//
//   - Any tool can run the files: names are unqualified, and the tool sets the search_path. Print writes them
//     without this package's annotations.
//   - All work is done on one session that is closed afterwards: its search_path and its lock end with it.
//   - Two programs that migrate at once take turns, by an advisory lock of that session. The second finds the work
//     done.
//   - A migration gives up its place in the queue for a table after a tenth of a second, and tries again. So workers
//     wait for it no longer than that, even if a slow call of one worker keeps the table.
//   - Every object that is used belongs to a trusted role: a superuser, the role itself or one of which it is a
//     member, the owner of the database. A table that another role made under one of our names could have triggers,
//     which would run with our rights.
//   - A session through a connection pooler is refused: in transaction mode search_path and lock would be another
//     client's.
//
// # Left out
//
// Roles and grants.
package migrations
