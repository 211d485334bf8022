// Package kafka delivers each record as one message to a topic of Kafka.
//
// # Nouns
//
//   - Sink: one cluster, reached over one client at a time.
//   - Message: the form in which a record is sent. Its value is the payload's bytes, its key the record's key. Its
//     headers carry identity, order and fencing token.
//   - Window: how many records may be on their way at a time, of at most MaxBytes: one batch of each partition. The
//     client has the whole window before it writes any record of it.
//   - Batch: neighbours in a window that go to the same partition, as one unit. A broker takes it or refuses it whole.
//   - Call: one DeliverBatch, with the acknowledgements that it has seen.
//   - Sizes: how large a batch may be for a topic that has refused larger ones.
//   - Link: a client with a producer id of its own. After any failure a link is closed and never used again.
//   - Transaction: with a transactional id, each window is a transaction. Either all of it counts, or nothing.
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
// The broker numbers the batches that a producer id sends to a partition. It refuses a batch that does not follow the
// last one (OUT_OF_ORDER_SEQUENCE_NUMBER). So nothing that is on its way can land after a refused batch. The client
// then fails everything that it still holds for the partition. This leaves some gaps, which the sink closes:
//
//   - Suppose that the client has failed the partition, and the sink does not know that yet. A record handed to the
//     client at that moment would be sent. So the sink hands over a window whole before it lets the client send
//     (ManualFlushing). It hands over nothing more before all of the window is answered. After the last answer of a
//     window the client looks once more, and may then find the beginning of the next window. That would give a
//     partition two batches. So nothing is written before the client has the whole window (written.release), and a
//     refusal of the first batch fails both.
//   - If a batch fails before the client writes it, the client writes an empty request, which silences a broker. The
//     sink does not let it be written (whole).
//   - If a record is too large for the client, the client fails it alone, and sends the records after it. So a large
//     record is a window of its own.
//   - If the client does not know the partitions of a topic yet, it would send the first records while others are still
//     on their way into its buffer. So the first record of each topic is a window of its own.
//   - A broker that does not know a producer id takes any number from it. So does a broker that has forgotten the id, a
//     day after its last batch in the partition. So each partition has one batch on its way, or two where the client
//     had an acknowledgement before, and a link is renewed after an hour.
//   - After a lost answer, or where a batch was sent again, the broker may have a batch that it would take once more
//     under a new epoch of the client. If the client then writes under a new epoch, that ends the window
//     (errRenumbered). Before that, a batch goes again under its own number, after an unclear answer too.
//   - A request whose records cannot be read is not written (errUnread).
//   - In a transaction a new epoch of the client leaves out the records that were sent before. It ends the window
//     (errForgotten).
//   - After a loss at the broker the client would begin new numbers and go on. It is configured to stop
//     (StopProducerOnDataLossDetected).
//
// # Invariants
//
//   - No record after a refused record lands in its partition before the refused one.
//   - A record's key decides its partition. Without a key, all records of the process go to the same partition.
//   - The sink isolates a record that fails for good. When the broker refuses a batch, the sink sends its first half
//     again, and then half of that.
//   - Within a call the sink never sends a record again whose acknowledgement it has seen. Each partition continues
//     after its own last record.
//   - The sink sends no record over a new link if there is too little time for its answer: see late.
//   - Without transactions, a record that has failed goes alone at its next attempt, because it is the first of its
//     topic on a new link. No record after it is sent with it.
//   - Within a call a record that may have landed is sent again with the same number, so that the broker drops it if it
//     has the record. After the call no record is.
//   - With a transactional id, a fenced producer makes no new epoch in Kafka until its worker has had to show that it
//     holds the lease: see fence.
//   - With a transactional id, a link belongs to one epoch. A worker that has taken its lease anew asks for the id
//     before it sends.
//   - A record that was written may have arrived, unless the broker refuses it once. A refusal that follows a lost
//     answer leaves it open. A refusal that may pass becomes the error before the time runs out. It is not an attempt
//     of the record, although the record may have arrived.
//   - If an acknowledged record is missing, the process halts until an operator decides. The sink notices it by another
//     id of the topic, or by an offset that comes again, over all links: see stood. Before a new link sends, it looks
//     at the last record of each partition: see look.
//   - A window may reach a partition over another connection than the window before it, because that one was lost or
//     closed as idle. Such a window does not count before the sink has looked at its records and at those before it:
//     see confirm.
//   - Nothing is written to a connection that the other side has left: see watched.
//   - No call waits longer than Config.Timeout, or than its context.
//   - No error, log or String shows user or password.
//
// # Left out
//
// Schema registries, acks other than all, partitions that the sink chooses itself, making topics.
package kafka
