// Package table reads records from any PostgreSQL table, strictly in order. It reads only below a fence, and no open
// transaction can still commit a row below that fence.
//
// # Nouns
//
//   - Source: one table (or partition tree), its order and its columns.
//   - Order: CreatedAt, position = (created_at, id); or ID, position = (id), for integers that a sequence assigns.
//   - Writer: a transaction that holds the lock that every inserter must hold.
//   - Sample: the result of one read: the mark m, which is taken first, and the writers W.
//   - Fence: the bound of a read. Other rows may still appear before a record that is at or past the fence.
//   - Finding: something about the table that breaks or weakens a promise, with the SQL that fixes it.
//
// # Diagram
//
//	one flush, one READ COMMITTED transaction, a snapshot for each statement:
//
//	1. m  := clock_timestamp(), or the sequence's last value
//	2. W  := the writers                    ── fence := min(m, bounds of W) - slack
//	3. rows after the position, in order    ── those below the fence are records
//
// # Invariants
//
//   - The three statements run in this order. Suppose that statement 3 does not see a row below the fence. Its
//     transaction would have to be one of three. (a) It was in W: then the row's stamp is not below the bound of that
//     writer. (b) It locked the table after statement 2: then the stamp is later than m. (c) It ended before statement
//     2: then statement 3 sees the row.
//   - A writer that sample i sees for the first time is bounded by m of sample i-1. It keeps that bound as long as
//     every sample sees it. A writer has no bound if the very first sample sees it, or the first sample after the clock
//     stepped back. Nothing is read past such a writer until it ends.
//   - The lock may be on the table, on any part of it, or on a table above it: PostgreSQL stamps a row that it routes
//     into a partition before it locks the partition.
//   - If the stamp is the start of a transaction (now()), every session at work is a writer. Its bound is the arrival
//     of its message: all transactions of that message may have this stamp, including those that have not begun yet. An
//     idle session is a writer unless it was seen, after the mark, to wait for its client. A role that cannot see this
//     of all sessions is refused.
//   - The server compares positions, as tuples, in the columns' own types. A position is stored by value, so deleting a
//     record moves nothing.
//   - A payload's bytes are exactly those that the server printed. They are never decoded or encoded again.
//
// # Left out
//
// Who reads, where records go, and how far a process has come.
//
// A read also does not see rows whose stamp is older than their lock. Four things make such rows: an UPDATE of
// created_at, a value that the INSERT names or a trigger sets, a partition that is attached with rows in it, and an
// id that was fetched from the sequence before the INSERT. Inspect and InspectRows name those that leave a trace. A
// background worker may be stopped between the stamp of now() and the moment at which its transaction can be seen.
// Only the latency guards against that.
package table
