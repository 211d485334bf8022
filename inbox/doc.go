// Package inbox is the receiver's half: it applies each record once, in the receiver's own transaction, and refuses
// what a superseded worker sends.
//
// # Nouns
//
//   - Receiver: who applies records, by a name. Two receivers in one database each apply every record.
//   - Message: what Handle has to know of a record, from the headers of docs/wire.md.
//   - Inbox: two tables in the receiver's database, see Inbox.SQL. inbox holds the dedup keys that were applied,
//     inbox_process the largest epoch and sequence of each process.
//
// # Invariants
//
//   - The key, the epoch and the sequence are noted in the transaction of the effect: all of it is committed, or
//     nothing.
//   - Two calls with the same receiver and process take turns, by the lock of a row. A call that waited sees what the
//     one before committed.
//   - Of a message that is stale, repeated, or after a gap that is refused, nothing is applied.
//   - The largest epoch and the largest sequence never fall.
//
// # Diagram
//
//	message ──► epoch below the largest seen? ── StaleError (409)
//	            key applied before?           ── Duplicate  (200)
//	            gap, and RefuseGaps?          ── GapError   (428)
//	            effect                        ── Applied    (200), once the transaction is committed
//
// # Left out
//
// The transaction itself, and when a broker's message is acknowledged: after the COMMIT.
package inbox
