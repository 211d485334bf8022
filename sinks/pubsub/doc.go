// Package pubsub delivers each record as one message to a topic of Google Cloud Pub/Sub.
//
// # Nouns
//
//   - Sink: one topic, reached over one connection.
//   - Message: the payload's bytes, with the record's identity, order and fencing token in its attributes.
//   - Ordering key: Pub/Sub keeps an order within one key. Every message has one.
//   - Chain: the messages of a window that share an ordering key. They travel in one request, or in several, each after
//     the answer to the one before.
//   - Window: how many records may wait for an answer at a time.
//
// # Diagram
//
//	DeliverBatch ──► window ──► a chain for each ordering key ──► request ──► answer
//	                   ▲                                                        │
//	                   └── all acknowledged ──── the prefix without a failure ◄─┘
//
// # Message
//
//	data               the payload
//	ordering key       made by the template; the process's name where it makes ""
//	attribute ordered-*  process, sequence, epoch, attempt, position, dedup-key (its
//	                   SHA-256 if it has more than 1,024 bytes, or is not UTF-8); key
//	                   and type if the record has them
//	other attributes   the headers of the record; none of them begins with "ordered-"
//
// # Invariants
//
//   - Pub/Sub takes a request as a whole or refuses it as a whole. The sink sends no message of a chain before all
//     earlier ones are acknowledged. So after a failure no message with its ordering key lands.
//   - With a window of 1 nothing at all is sent after a failure. With a larger window, records with other ordering keys
//     may be sent: Pub/Sub shows no order between keys.
//   - A request is made once, under the call's context. The client neither tries again nor goes on when the call is
//     over. The processor tries again.
//   - A failure leaves nothing to be resumed: no ordering key is paused.
//   - A connection on which a request got no answer is never used again.
//   - No error, log or String shows credentials.
//
// # Left out
//
// The client's Publisher, which decides itself when to send (docs/decisions/0017); subscriptions, which belong to the
// consumers; schemas; messages without an order.
package pubsub
