// Package inbox is the receiver's half: it applies each record once, in the receiver's own transaction, and refuses
// what a superseded worker sends.
//
// # Nouns
//
//   - Receiver: who applies records, by a name. Two receivers in one database each apply every record.
//   - Message: what Handle has to know of a record, from the headers of docs/wire.md.
//   - Stream: records of a process that have one order. Over HTTP all of them do.
//   - Inbox: two tables in the receiver's database, see Inbox.SQL. inbox holds the dedup keys that were applied,
//     inbox_process the origin of each process, and the largest epoch and the last sequence of each stream.
//   - Handler: applies what a webhook sink posts.
//
// # Invariants
//
//   - The key, the epoch and the sequence are noted in the transaction of the effect: all of it is committed, or
//     nothing. The Handler commits a larger epoch also if the effect fails.
//   - Two calls with the same receiver, process and stream take turns, by the lock of a row. A call that waited sees
//     what the one before committed.
//   - Of a message that is refused or repeated, nothing is applied.
//   - The largest epoch never falls, unless an operator accepts another origin. An epoch begins with its first record that
//     is in its turn: a replay notes neither epoch nor sequence.
//   - All streams of a process have one origin, since they share the dedup keys.
//   - A stream has gaps by nature. RefuseGaps and a Stream together are an error before anything is noted.
//
// # Diagram
//
//	message ──► another version?          ── VersionError (409)
//	            another origin?           ── OriginError (409)
//	            key applied before?       ── Duplicate   (200)
//	            epoch below the largest?  ── StaleError  (409)
//	            a replay?                 ── effect
//	            sequence not above last?  ── LateError   (409)
//	            gap, and RefuseGaps?      ── GapError    (428)
//	            effect                    ── Applied     (200), once the transaction is committed
//
// # Left out
//
// The transaction itself, and when a broker's message is acknowledged: after the COMMIT. An answer to the probe of a
// webhook sink: a record that comes again is a duplicate here, so it may come.
package inbox
