// Package processor moves records from a source to a sink, in order, and
// advances the cursor only behind what the sink has acknowledged.
//
// # Nouns
//
//   - Process: the loop for one named cursor. Any number of workers may run
//     the same process; one works, the others stand by.
//   - Record: a row to deliver, with its position.
//   - Delivery: a record handed to a sink, with the process, sequence, epoch
//     and attempt it is handed over under.
//   - Source: where records come from, in order.
//   - Sink, BatchSink, TxSink: where they go.
//   - Dispatch: the guarantee, chosen by name: Each and Batch deliver at least
//     once, InTx exactly once within the database.
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
//   - Record n+1 is never handed to a sink before n is acknowledged.
//   - The cursor passes only acknowledged records.
//   - A record that fails for good halts its process and nothing behind it is
//     sent until an operator decides. No timer ever skips a record.
//   - A sink call runs under the lease's context: it ends when the lease does.
//   - What was acknowledged is not delivered again because an advance failed:
//     the advance is tried again, as long as no other worker came between.
//   - A record that an earlier call may have handed over, with an outcome that
//     nobody knows, is marked so (Delivery.Unknown): a sink may ask before it sends.
//   - What is told of a record to others than its sink, in logs, events and spans,
//     is its id, position, sequence and attempts, not what it holds. An error's text
//     is the sink's.
//
// # Left out
//
// Where records come from, what receivers do with them, configuration files,
// signals and logs' destination: see sources, sinks and command/internal/daemon.
package processor
