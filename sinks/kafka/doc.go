// Package kafka delivers each record as one message to a topic of Kafka.
//
// # Nouns
//
//   - Sink: one cluster, reached over one client at a time.
//   - Message: what a record becomes. Its value is the payload's bytes, its key the
//     record's; headers carry identity, order and fencing token.
//   - Window: how many records may be on their way at a time, of at most MaxBytes: one
//     batch of each partition. The client has them before any is written.
//   - Batch: neighbours of a window that go to the same partition, as one unit.
//     A broker takes it or refuses it whole.
//   - Call: one DeliverBatch, and what it has seen acknowledged.
//   - Sizes: how large the batches of a topic may be that has refused larger ones.
//   - Link: a client, with a producer id of its own. One on which anything went
//     wrong is closed and never used again.
//   - Transaction: with a transactional id, a window; all of it counts, or nothing.
//
// # Diagram
//
//	DeliverBatch ──► window ──► the client's buffer, whole ──► batches, in their partition's order
//	                   ▲                                             │
//	                   │ what is left, in smaller batches,           ├─ all acknowledged ──► next window
//	                   └ if the broker refused one of several ◄──────┴─ else ──► n acknowledged, error of the next
//
// # Message
//
//	key             the record's; none if it has none
//	value           the payload; null, a tombstone, if there is none
//	timestamp       the time of sending: retention counts from it
//	event_id        the dedup key
//	content-type    application/json
//	ordered-*       process, sequence, epoch, attempt, position; key, type and created-at
//	                (RFC 3339) if the record has them
//	other headers   those of the record; none of them begins with "ordered-" or is event_id
//
// # Order within a partition
//
// The broker numbers what a producer id sends to a partition, and refuses a batch
// that does not follow the last one (OUT_OF_ORDER_SEQUENCE_NUMBER): behind a batch
// that was refused, nothing on its way can land. The client then fails all that it
// still holds for the partition. What is left open is closed here:
//
//   - A record handed to the client after it had failed the partition, and before
//     we know, would be sent. So a window is handed over whole before the client is
//     told to send (ManualFlushing), and nothing after it before all of it is answered.
//     The client looks once more after the last answer of a window, and may then find
//     the beginning of the next one, so that a partition has two batches. So nothing is
//     written before the client has the whole window (written.release), and a refusal
//     of the first batch fails both.
//   - Of a batch that failed meanwhile the client writes an empty request, which
//     silences a broker. It is not written (whole).
//   - A record that is too large for the client is failed alone, and those behind
//     it are sent. So a large one is a window of its own.
//   - Records of a topic whose partitions the client does not know yet would be
//     sent while others are still on their way into its buffer. So the first one
//     of each topic is a window of its own.
//   - Of a producer id that it does not know a broker takes any number. So does
//     one that has forgotten it, a day after its last batch in the partition. Of a
//     partition one batch is on its way, or two where the client had an
//     acknowledgement before, and a link is renewed after an hour.
//   - After a lost answer, or where a batch was sent again, the broker may have a batch
//     that it would take once more under a new epoch of the client's. If the client then
//     writes under one, that ends the window (errRenumbered). Before, a batch goes again
//     under its own number, after an unclear answer too.
//   - A request with records that cannot be read is not written (errUnread).
//   - In a transaction a new epoch of the client's leaves out what was sent before. It
//     ends the window (errForgotten).
//   - After a loss at the broker the client would number anew and go on. It is
//     told to stop (StopProducerOnDataLossDetected).
//
// # Invariants
//
//   - Nothing behind a refused record lands in its partition before it.
//   - A record's key decides its partition. Without one, all records of the
//     process go to the same partition.
//   - What fails for good is found alone: of a batch that the broker refuses the
//     first half is sent again, and its half.
//   - Within a call nothing is sent again that it has seen acknowledged. Each partition goes
//     on behind its own last record.
//   - No record is sent over a new link with too little
//     time for its answer: see late.
//   - Without transactions, what has failed goes alone at its next attempt, being
//     the first of its topic on a new link: nothing behind it is sent with it.
//   - Within a call a record that may have landed is sent again with the same
//     number, so that the broker drops it if it has. After the call nothing is.
//   - With a transactional id a producer that was fenced makes no new epoch in
//     Kafka until its worker has had to show that it holds the lease: see fence.
//   - With a transactional id a link is of one epoch: a worker that has its lease anew
//     asks for the id before it sends.
//   - What was written may have arrived, unless the broker says no to it, once: a no
//     that follows a lost answer leaves it open. A no that may pass is the error before
//     the time runs out, and no attempt of the record, although that may have arrived.
//   - What was acknowledged is missed: another id of its topic, or an offset that comes
//     again, halts the process until an operator decides, over all links: see stood.
//     A new link looks, before it sends, at the last record of each partition: see look.
//   - A window of which a partition is reached over another connection than the one before it, lost or
//     closed as idle, does not count before a look at its records and at those before it: see confirm.
//   - Nothing is written to a connection that the other side has left: see watched.
//   - No call waits longer than Config.Timeout, or than its context.
//   - No error, log or String shows user or password.
//
// # Left out
//
// Schema registries, other acks than all, partitions of the sink's own choice,
// making topics.
package kafka
