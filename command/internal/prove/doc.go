// Package prove answers two questions about a table of a user, and writes nothing: which rows another way to read it
// loses (prove), and where a process may begin that takes over from it (adopt).
//
// # Nouns
//
//   - Look: one question for the fence, and after it one snapshot of the newest rows.
//   - Reader: a way to read the table: "id >", a window of time, or ours. All readers see the same looks.
//   - Lost: a row that became visible behind the place to which a reader had come. The reader never asks for it again.
//   - Delivered: a row that the old way has sent, as far as the database shows it.
//   - Start: the position after which a process may begin: all rows up to it are delivered, and no other can appear.
//
// # Diagram
//
//	fence ─► snapshot of the rows ─► each row that is new in it: is it behind the id reader, the time reader, ours?
//	fence ─► first row that is not delivered, or that is at the fence ─► the row before it is the start
//
// # Invariants
//
//   - Every transaction is read-only, and takes only the lock of a SELECT.
//   - The fence is asked for before the snapshot of the rows: see Source.Fence in package table.
//   - A measurement keeps at most maxRows rows in memory. A table that is faster ends it early.
//   - Nothing of a record is read but its id and its time.
//
// # Left out
//
// Moving a cursor: adopt prints the commands, and an operator runs them.
package prove
