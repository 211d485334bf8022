// Package operator carries out what people decide about processes, and shows them what they need to decide.
//
// A worker only delivers and advances. Everything that a person does to a cursor is here, and each decision
// leaves an event in the audit.
//
// # Nouns
//
//   - Operator: decides about the cursors of one schema. It is made from the cursor.Store that workers use, too.
//   - Decision: who decides, why, and about which position (cursor.Decision).
//   - Change: the row before a decision and after it.
//   - Event: a row of the audit. A decision and its event are one transaction.
//   - Passage: what a cursor has passed since its sequence was at a number, by the audit (since.go).
//   - Dead letter: a record that its process put aside (cursor.DeadLetter). Package processor replays it.
//   - Duty: a task of a role. Grants prints the rights that a duty needs, and Doctor finds those that are missing.
//
// # Diagram
//
//	Pause, Resume, Retry, Skip, Seek, Restored      Forget, Rename
//	                 │                                    │
//	                 ▼                                    ▼
//	 wait for the row's lock ──► check Expect ──► write the row and its event ──► COMMIT
//	      │ a worker yields             │
//	      ▼                             ▼
//	  cursor.ErrLocked           cursor.ErrMoved, ErrNotFailing, ErrOldPrimary, cursor.ErrHalted
//
// # Invariants
//
//   - A decision holds the row lock that a lease holds. So it comes between two checkpoints, and never during a
//     delivery.
//   - The row changes together with its event, or not at all. After cursor.ErrUncertain, History shows which.
//   - A decision that moves the position or the count of attempts begins an epoch. A worker that was between two
//     transactions then loses its lease.
//   - No two records get the same sequence. Skip keeps the number of its record unused, and Seek leaves a gap of
//     cursor.SeekGap.
//   - What a decision does to a row is a function of that row alone: an action. DryRun calls it without a lock.
//
// # Left out
//
// Replay delivers, so package processor does it, under a lease. Who has locked a row, and what became of a name,
// are questions of workers, too: see cursor.Store.
package operator
