// Package nats delivers each record as one message to a stream of NATS JetStream.
//
// # Nouns
//
//   - Sink: one stream, reached over one connection.
//   - Claim: a message on the process's fence subject, in the same stream. It holds the epoch of the worker that
//     publishes for the process. Each connection and each epoch has a new claim; the last one counts.
//   - Window: how many messages may wait for their acknowledgements at a time.
//   - Chain: it ties a message to the one before it in the window. The server takes the message only as the very next
//     of the stream, after that one.
//   - Tail: the messages directly before a claim.
//   - Id: the server recognizes a message by it, for the stream's duplicate window.
//
// # Diagram
//
//	connect ──► check the stream ──► read the last claim ── newer epoch ──► refuse: superseded
//	                                      │ older, own or none
//	                                      ▼
//	            write a claim, expecting that one ──► read the tail: what has landed is delivered
//	                                      │
//	                                      ▼
//	DeliverBatch ──► publish, expecting the claim, or the message before ──► acknowledgements, in order
//	                                      ▲                                      │ duplicate
//	                                      └── another id ◄── not the record ◄── read the message there ──► the record: delivered
//
// # Message
//
//	Nats-Msg-Id        the id: a digest of origin, sequence, position, dedup key and payload
//	Content-Type       application/json
//	ordered-*          process, origin, sequence, epoch, attempt, position, dedup-key; key
//	                   and type if the record has them; replay if it is a dead letter
//	other headers      those of the record; none of them begins with "ordered-" or
//	                   "nats-", which would be orders to the server
//
// Control characters, %, bytes that are not ASCII, and spaces at the ends of a value are written as %XX.
//
// # Invariants
//
//   - The server takes a message only while the sink's claim is the last one, or directly after a message of the sink's
//     own. After a newer claim, nothing of an older connection lands, no matter what is on its way. The server decides
//     that.
//   - A claim never follows a claim of a newer epoch.
//   - No message of a window lands after a message that was refused.
//   - A message in a chain names the sequence and the id that it follows. The id alone would let a superseded worker
//     carry on after the same record of its successor. The sequence alone would let the message follow another record.
//     A claim shifts all sequences, so the two never match together: see docs/decisions/0021-nats-fence.md.
//   - Acknowledgements count in order. If an acknowledgement reports a duplicate, it counts if the message that it
//     names is the record: same id, same payload. That message may be gone from a work queue. In any other case the
//     record goes out again under an id of its own.
//   - A fence belongs to one cursor: a claim of another origin is not replaced.
//   - A message counts only if our message before it is still in the stream. Either the server has compared that
//     message in a chain, or there was no time to lose it, or the sink reads it again. A message that is gone is not a
//     loss, since limits, a purge and consumers remove messages.
//   - If the tail has a record, at its sequence or later, the record is delivered and not sent.
//   - A connection on which something went wrong is never used again, and the client never sends anything again by
//     itself.
//   - No error, log or String shows a password, token or key.
//
// # Left out
//
// Core NATS without a stream; subject mappings of an account, which the check of the stream does not know; atomic
// batches, which would hold acknowledgements back.
package nats
