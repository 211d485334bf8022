// Package processor moves records from a source to a sink, in order. It advances the cursor only past records
// that the sink has acknowledged.
//
// # Nouns
//
//   - Process: the loop for one named cursor. Any number of workers may run the same process; one works, the
//     others stand by.
//   - Record: a row to deliver, with its position.
//   - Delivery: a record handed to a sink, with the process, sequence, epoch and attempt of this hand-over.
//   - Source: where records come from, in order.
//   - Sink, BatchSink, TxSink: where they go.
//   - Dispatch: a sink with its guarantee, chosen by name: Each, Batch and Pipeline deliver at least once, InTx
//     exactly once within the database. It is data: it calls nothing but its sink.
//   - Shift: the work of one worker under one lease. It makes all sink calls and all writes.
//   - Progress: what a worker knows of its delivery beyond the cursor's row. It is a value with rules, and
//     outlives the shift: see progress.go for who sets and who clears what.
//   - Chunk: the records that are handed over together. An advance follows each chunk.
//   - Verdict: the decision about a record that failed for good, a halt or a dead letter.
//
// One knows the next, and never the other way: Process -> shift -> Dispatch, progress.
//
// # Passes
//
// A process makes pass after pass (process.go, find.go):
//
//	    ┌──────────── nothing to deliver, or the lease is gone ───────────┐
//	    ▼                                                                 │
//	stand by ── Look, Read(1) ──► something there ── Acquire ──► work ────┤
//	    ▲                                                         │       │
//	    │                                          Read ─► deliver ─► Advance
//	    │                                                 │
//	    └── next attempt is due ── release, wait ◄── fail ┴─► halt
//
// # One delivery
//
// A shift delivers chunk after chunk (shift.go, deliver.go). The right column is what progress notes.
//
//	settle, conclude    the advance that an earlier shift owes, then its verdict      due, pending
//	recall              the failing record of the row                                 recalled
//	read                the next page, while this one is delivered (ahead.go), and prepare it (prepare.go)
//	  write off         records that were sent and are gone keep their numbers        writtenOff
//	  amend             the payload that an operator gave to the first record (amend.go)
//	  prepare           what is not ready yet; its failure is an attempt
//	  admit             wait until the limit lets the chunk go (limit.go)
//	  hand              the chunk to the sink (call.go):                              attempted
//	    call              one call for all of it, or one for each record: under the
//	    attempt           lease, with a time-out, a guard against panics, a span
//	    send              Dispatch: the sink itself
//	    inTx              or each record in the lease's transaction (intx.go)
//	  advance           the cursor past what is acknowledged                          acknowledged, advanced
//	  failed            the record after it (failure.go):                             failed
//	    wait              a short time under the lease, then the chunk again
//	    defer             write the next attempt to the row, give the lease back
//	    carry out         a verdict: halt, or dead letter (verdict.go)                judged, halted, deadLettered
//
// # Invariants
//
//   - The worker never hands record n+1 to a sink before n is acknowledged.
//   - The cursor passes only acknowledged records.
//   - A record that an operator has amended goes out with that payload and with no other.
//   - A record that fails for good halts its process. Nothing after it is sent until an operator decides. No
//     timer ever skips a record.
//   - A sink call runs under the lease's context: it ends when the lease does.
//   - A failed advance does not make an acknowledged record go out again: the worker tries the advance again,
//     unless another worker came in between.
//   - An earlier call may have handed a record over, with an unknown outcome. Then Delivery.Unknown marks the
//     record, and a sink may ask the receiver before it sends.
//   - Only the sink gets the contents of a record. Logs, events and spans contain its id, position, sequence
//     and attempts. The sink words the text of its errors.
//
// # Left out
//
// Where records come from, what receivers do with them, configuration files, signals and logs' destination: see
// sources, sinks and command/internal/daemon.
package processor
