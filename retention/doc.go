// Package retention removes rows of a source's table that every cursor on that table has passed.
//
// # Nouns
//
//   - Rule: what is to become of the rows of one table once they are older than Keep: they are deleted, marked,
//     moved into another table or into files, or dropped with their partition.
//   - Reader: a process that reads the table, a part of it or a table above it, in any state.
//   - Pass: one run of a rule. It works in batches, each a small transaction, until a row must stay.
//   - Hold: a process that needs a row which is older than Keep. Its text has what makes the row free.
//   - Pruned: how far rows are gone, in the table "pruned" beside the cursors. A seek to a place before that is
//     refused (operator.PrunedError), also on a partition of the table or on a table above it.
//   - Shelf: where archive files go. Directory is one, and an object store another: see module stores/buckets.
//   - Erasure: the removal of a person's data from rows that every process has delivered.
//
// # Diagram
//
//	one batch, one transaction
//
//	try the locks: seek, shared; table ── held by a seek, or by another pass ──► ErrBusy
//	        │
//	        ▼
//	read all cursors ── one that is not known ──► refused
//	        │
//	        ▼
//	look at the oldest rows ─► the first that must stay, and who needs it
//	        │
//	        ▼
//	[ write the file, fsync ]          mode files only; no lock on the table yet
//	        │
//	        ▼
//	DELETE or UPDATE of the rows before that one ─► pruned.through ─► COMMIT
//
// # Invariants
//
//   - A row goes only if no reader needs it. A reader needs a row that is after the position of its cursor and that
//     its source.where takes. The statement that removes rows has this condition itself, so the snapshot that sees
//     a row also sees that it is not needed.
//   - No undelivered row is among them. The record of a cursor's position was below the fence when it was read: every
//     row up to that position was visible then, or never will be. There is one exception: rows that the application
//     stamps in the past. Delivery does not read them either.
//   - A position that moves back and a removal exclude each other. The removal shares an advisory lock of the database
//     until it commits, and reads the cursors after it has the lock. A seek holds the row of its cursor, takes the
//     same lock alone, and only then reads how far rows are gone. So either the pass sees the position to
//     which the cursor went back, or the seek sees that the rows are gone. A pass takes no lock on a cursor's row:
//     it would wait for workers, and they for it.
//   - A pass knows what every cursor of the schema reads, or removes nothing. It does not see those of other schemas. A cursor that appears in between ends
//     the pass.
//   - A shelf has 8 s for a batch. One that is away costs nothing but the pass: no row is deleted before its file is there.
//     A call to a file system that hangs is left behind, and no second one is made in that directory until it ends.
//   - A transaction that removes rows is a writer of the table, so the fence waits for it. It has at most Batch rows,
//     waits at most 100 ms for a lock, and the pass then rests as long as the transaction took.
//   - A row and its copy in an archive table change in one transaction. A file is on the disk before its rows are
//     deleted. Its name has the positions of its first and last row, and a digest of its lines: no file is replaced by
//     one with other rows. A file is removed only if another one has all of its rows.
//   - A partition goes only if its range is over. Before it is detached, it is closed: under a lock that waits for all
//     writers, a pass adds a constraint that keeps new rows out, and then asks whether a process needs a row. So no
//     record is written to it that a worker would pass: docs/decisions/0060-retention.md has the proof. No one opens it
//     until it is marked as detached. If the DETACH fails before that, the pass opens it; after that, the next pass goes
//     on with it. If a process needs a row before the drop, the partition is attached again.
//
// # Left out
//
// Who the readers are: package command finds that out from the file and the audit. Object stores: gocloud.dev/blob would
// bring the SDKs of three clouds into the module of the library, so it has only the interface Shelf. The audit of cursors and dead letters have no rule here: see docs/operations.md.
package retention
