// Package cursor decides which worker may deliver, and keeps how far a process has come.
//
// A process is a name with one row in the cursor table. The worker that holds that row's lock holds the lease
// of the process: the right to deliver its records and to advance its position.
//
// # Nouns
//
//   - Store: the cursor table of one schema. It grants leases.
//   - Lease: the right to advance one cursor, while it is held. It is a transaction that holds a row lock, and
//     a context that ends when the right ends.
//   - Position: how far a process has come. It is opaque here: one source makes and compares the positions of a
//     process. "" is before the first record.
//   - Epoch: the fencing token. It grows at every change of worker, and at an operator's resume, retry, skip or
//     seek. It never starts again, so a receiver can refuse what an older worker still sends.
//   - Sequence: the number of the last record that the process has delivered. It grows by one for each record.
//     processor.Delivery lists what leaves a hole in it.
//   - Failure: the record that a process is stuck on, and why.
//   - Decision: what an operator orders and answers for. Package operator has the decisions.
//   - DeadLetter: a record that its process put aside before it went on.
//
// # Diagram
//
//	               Acquire                          Advance (one flush)
//	worker ──► BEGIN; lock row, SKIP LOCKED ──► UPDATE; COMMIT; BEGIN; lock row ─┐
//	              │ last holder was another?         ▲        │                  │
//	              ▼                                  └────────┼──────────────────┘
//	           epoch+1; COMMIT; BEGIN; lock again             ▼
//	                                              Release | Fail | Halt | lost
//
// # Invariants
//
//   - A process has at most one lease at a time. The server frees a lock only after its worker has given up
//     (see Config.Timeout).
//   - An epoch is committed before the first delivery under it.
//   - The position only grows, and only under the lease and in the epoch that the lease was granted with. If a
//     checkpoint changes no row, the lease is lost.
//   - An operator takes the same lock as a worker (LockForOperator), so never during a delivery. Apart from the
//     lease's worker, only a skip or a seek moves the position. They begin an epoch: a worker that was between two
//     transactions must not go on with what it knew.
//   - An idle worker never holds the lock. A worker with nothing to deliver reads with Look, which takes
//     neither a lock nor a transaction id.
//   - No state outlives a doubt: after any error the lease is over, and the row is read again.
//
// A lease uses only row locks and SET LOCAL, so it works through PgBouncer in transaction mode.
//
// # Left out
//
// What a position means, where records come from and where they go. What operators decide about a process:
// package operator.
package cursor
