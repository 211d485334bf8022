// Package rabbitmq delivers each record as one message to an exchange of RabbitMQ, or of another AMQP 0-9-1 broker
// that has its publisher confirms.
//
// # Nouns
//
//   - Sink: one exchange, reached over one connection with one channel.
//   - Publishing: one message. It carries the payload's bytes. Its properties and headers carry the record's identity,
//     order and fencing token.
//   - Confirm: with it the broker takes over a publishing. Every queue that the publishing was routed to has it, on
//     disk where queue and message are durable.
//   - Return: with it the broker reports, before the confirm, that a publishing was routed nowhere. It is a failure,
//     though a confirm follows.
//   - Window: how many publishings may wait for their confirms at a time.
//
// # Diagram
//
//	DeliverBatch ──► publish (at most window on their way) ──► confirms, taken in order
//	                                     ack, not returned ──► next
//	                    nack, return, closed channel, time ──► n acknowledged, error of the next
//
// # Message
//
//	message-id         the dedup key (its SHA-256 if it has more than 255 bytes, or is not UTF-8)
//	content-type       application/json
//	delivery-mode      2, persistent
//	timestamp          the record's time of creation, in seconds, if it has one
//	type               the record's type, if it has at most 255 bytes, in UTF-8
//	header ordered-*   process, sequence (64 bit), epoch (64 bit), attempt, position,
//	                   dedup-key; key and type if the record has them
//	other headers      those of the record; none of them begins with "ordered-"
//
// # Invariants
//
//   - Confirms count in order: a publishing after the first failure is not acknowledged, no matter what becomes of it.
//   - With a window of 1 the sink publishes nothing before everything earlier is confirmed, so a queue shows the order
//     of the records. A record that is sent again after a fault comes directly after itself.
//   - With a larger window, records after a refused one may be in a queue before it, and come again after it: see
//     docs/sinks/rabbitmq.md.
//   - After a refusal, as many records go out one at a time as were on their way. After a failure without the broker's
//     word the window grows again from 1.
//   - A call sends nothing that its time is too short for, and keeps its link.
//   - A channel on which something went wrong is never used again: no confirm of an abandoned attempt can count for
//     another.
//   - A message that an alarm of the broker holds up is not sent again. Its connection is kept, and its confirm counts
//     for the same record, unchanged, under the same epoch.
//   - A call ends soon after its context does, even in a write that the broker does not read.
//   - No error, log or String shows user or password.
//
// # Left out
//
// Queues and bindings, which belong to the consumers; transactions of AMQP; the stream protocol (streams take AMQP
// publishings too).
package rabbitmq
