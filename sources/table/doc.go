// Package table reads records from any PostgreSQL table, in order and behind
// a fence that no open transaction can undercut.
//
// # Nouns
//
//   - Source: one table (or partition tree), its order and its columns.
//   - Order: CreatedAt, position = (created_at, id); or ID, position = (id),
//     for sequence-assigned integers.
//   - Writer: a transaction that holds the lock every inserter must hold.
//   - Sample: what one read saw: the mark m, taken first, and the writers W.
//   - Fence: the read bound. Records at or past it may still be preceded.
//   - Finding: something about the table that breaks or weakens a promise,
//     with the SQL that fixes it.
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
//   - The three statements run in this order. A row below the fence that
//     statement 3 does not see would belong to a transaction that (a) was in W,
//     so its stamp is not below its bound; (b) locked the table after
//     statement 2, so its stamp is later than m; or (c) had ended before
//     statement 2, and then statement 3 sees it.
//   - A writer first seen in sample i is bounded by m of sample i-1, and keeps
//     that bound as long as it is seen without a break. A writer of the very
//     first sample, or of one before which the clock stepped back, has no bound:
//     nothing is read past it until it ends.
//   - The lock is that of the table, of any part of it, or of a table above it:
//     a row that is routed into a partition is stamped before the partition is
//     locked.
//   - Where the stamp is the start of a transaction (now()), every session at
//     work is a writer, bounded by the arrival of its message: all transactions
//     of that message may have this stamp, also those that have not begun. An idle
//     one is a writer unless it was seen to wait for its client after the mark. A
//     role that does not see this of all sessions is refused.
//   - Positions are compared by the server, as tuples, in the columns' own
//     types, and stored by value: deleting a record moves nothing.
//   - A payload's bytes are those the server printed: never decoded, never
//     encoded again.
//
// # Left out
//
// Who reads, where records go, and how far a process has come. And what gives a
// row a stamp that is older than its lock, which a read does not see: an UPDATE of
// created_at, a value that the INSERT names or a trigger sets, a partition that is
// attached with rows in it, an id that was fetched from the sequence before the
// INSERT. Inspect and InspectRows name what of these leaves a trace. A worker in the
// background that is stopped between the stamp of now() and the moment its
// transaction can be seen is guarded against by the latency alone.
package table
