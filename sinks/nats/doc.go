// Package nats delivers each record as one message to a stream of NATS JetStream.
//
// # Nouns
//
//   - Sink: one stream, reached over one connection.
//   - Claim: a message on the process's fence subject, in the same stream, that holds
//     the epoch of whoever publishes for the process. There is a new one for each
//     connection and each epoch; the last one counts.
//   - Window: how many messages may wait for their acknowledgements at a time.
//   - Chain: what ties a message to the one before it in the window: the server takes
//     it only as the very next of the stream, behind that message.
//   - Tail: the messages directly before a claim.
//   - Id: what the server knows a message by, for the stream's duplicate window.
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
//	                                      └── another id ◄── not the record ◄── read what stands there ──► the record: delivered
//
// # Message
//
//	Nats-Msg-Id        the id: a digest of origin, sequence, position, dedup key and payload
//	Content-Type       application/json
//	ordered-*          process, origin, sequence, epoch, attempt, position, dedup-key; key
//	                   and type if the record has them; replay in that of a dead letter
//	other headers      those of the record; none of them begins with "ordered-" or
//	                   "nats-", which would be orders to the server
//
// Control characters, %, bytes that are no UTF-8, and spaces at the ends of a value
// stand as %XX.
//
// # Invariants
//
//   - A message is taken by the server only while the sink's claim is the last one, or
//     directly behind a message of the sink's own: behind a newer claim nothing of an
//     older connection lands, whatever is still on its way. The server decides that.
//   - A claim follows no claim of a newer epoch.
//   - Nothing of a window lands behind a message that was refused.
//   - A message in a chain names the sequence and the id it follows. The id alone would
//     let a superseded worker carry on behind the same record of its successor; the
//     sequence alone would let it follow another record. A claim shifts all
//     sequences, so never both hold: see docs/decisions/0021-nats-fence.md.
//   - Acknowledgements count in order. One that says duplicate counts if the message that
//     it names is the record: same id, same payload. From a work queue that message may
//     be gone. Anything else goes out again under an id of its own.
//   - A fence belongs to one cursor: a claim of another origin is not replaced.
//   - A message counts only if the one of ours before it is still in the stream: the server has compared
//     it in a chain, or there was no time to lose it, or it is read again. One that is gone is no loss,
//     since limits, a purge and consumers remove messages.
//   - A record that the tail has, at its sequence or behind, is delivered and not sent.
//   - A connection on which something went wrong is never used again, and the client
//     never sends anything again by itself.
//   - No error, log or String shows a password, token or key.
//
// # Left out
//
// Core NATS without a stream; subject mappings of an account, which the check of the
// stream does not know; atomic batches, which would hold acknowledgements back.
package nats
