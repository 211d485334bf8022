// Package cursor says who may work and how far a process has come.
//
// A process is a name with one row in the cursor table. Whoever holds that
// row's lock holds the lease of the process: the right to deliver its records
// and to advance its position.
//
// # Nouns
//
//   - Store: the cursor table of one schema; grants leases.
//   - Lease: the held right to advance one cursor. It is a transaction with a
//     row lock in it, and a context that ends when the right does.
//   - Position: how far a process has come. Opaque here: minted and compared
//     by one source. "" stands before the first record.
//   - Epoch: the fencing token. It grows at every change of worker and never
//     starts again, so a receiver can refuse what an older worker still sends.
//   - Sequence: how many records the process has delivered, without holes but
//     for those of Skip and Seek.
//   - Failure: the record that a process is stuck on, and why.
//   - Decision: what an operator answers for: Pause, Resume, Retry, Skip, Seek.
//   - Event: a row of the audit, which keeps every decision.
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
//   - At most one lease per process exists at a time. The server frees a lock
//     only after its worker has given up (see Config.Timeout).
//   - An epoch is committed before the first delivery under it.
//   - The position only grows, and only under the lease and the epoch it was
//     granted with. A checkpoint that changes no row is a lost lease.
//   - An operator holds the same lock as a worker, and never while it delivers.
//     Skip and Seek alone move the position otherwise. They give no sequence to a
//     second record, and begin an epoch, as does Retry: a worker that was between
//     two transactions must not go on with what it knew.
//   - The lock is never held by an idle worker: whoever has nothing to deliver
//     reads with Look, which takes neither lock nor transaction id.
//   - No state outlives a doubt: after any error the lease is over and the row
//     is read again.
//
// Only row locks and SET LOCAL are used, so a lease works through PgBouncer in
// transaction mode.
//
// # Left out
//
// What a position means, where records come from and where they go.
package cursor
