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
//   - Dispatch: the guarantee, chosen by name: Each, Batch and Pipeline deliver at least once, InTx exactly once
//     within the database.
//
// # Diagram
//
//	    ┌──────────── nothing to deliver, or the lease is gone ───────────┐
//	    ▼                                                                 │
//	stand by ── Look, Read(1) ──► something there ── Acquire ──► work ────┤
//	    ▲                                                         │       │
//	    │                                          Read ─► deliver ─► Advance
//	    │                                                 │
//	    └── next attempt is due ── release, wait ◄── fail ┴─► halt
//
// # Invariants
//
//   - The worker never hands record n+1 to a sink before n is acknowledged.
//   - The cursor passes only acknowledged records.
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
