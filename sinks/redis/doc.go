// Package redis delivers each record as one entry of a stream of Redis, once.
//
// # Nouns
//
//   - Sink: one server, reached over one connection.
//   - Stream: a key of Redis that holds entries in the order in which they were appended.
//   - Script: what appends an entry (append.lua). Redis runs it without anything in between.
//   - State: how far a process is: the epoch, the worker and the number of its last entry. Redis keeps it beside the
//     streams, in a hash of the process.
//   - Mark: a digest of a record's number, position and dedup key. Redis keeps those of the last records of a process.
//   - Window: how many records go out together, as a pipeline.
//
// # Diagram
//
//	DeliverBatch ──► pipeline ──► script, for each record ──► answers, taken in order
//	                                │  older epoch ───────────► superseded
//	                                │  its number is there ───► taken, if the mark is
//	                                │  data is missing ───────► lost
//	                                │  the one before is not there ──► early
//	                                └► XADD and the new state ► appended
//
// # Entry
//
//	ordered-*, content-type   as package wire has them
//	other fields              the headers of the record
//	payload                   its bytes
//
// # Invariants
//
//   - An entry and the state that knows it are written together, or neither is. So a record that comes again is
//     appended once, and no outcome is open for longer than an attempt.
//   - Nothing of an epoch is appended after something of a later one.
//   - Within a pipeline a record is appended only if the one before it is there. So no record is appended after one
//     that Redis refuses.
//   - A number that Redis has counts as delivered only if the mark of this very record is there.
//   - Records that Redis had acknowledged, and does not have, are never passed over in silence where Redis or the sink
//     can know: the process halts, until an operator has decided.
//   - A call ends soon after its context does.
//   - No error, log or String shows the password.
//
// # Left out
//
// Redis Cluster and Sentinel: a stream and the state are on one server, and the address is the master's. WAIT and
// WAITAOF: a record that comes again writes nothing that they could wait for. Consumer groups belong to the consumers.
// Sockets of Unix.
package redis
