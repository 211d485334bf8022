// Package watermill delivers each record as one message through a Publisher of
// Watermill, github.com/ThreeDotsLabs/watermill: to whatever system one exists for.
//
// # Nouns
//
//   - Sink: a Publisher, and the topic of each record.
//   - Turn: the right to call Publish. One call has it at a time, and keeps it until
//     the Publisher returns, even if nobody waits for that any more.
//
// # Diagram
//
//	Deliver ──► turn ──► Publisher.Publish(topic, one message) ──► nil: delivered
//	               ▲                         │ error: tried again
//	               └──── has returned ◄──────┘ context over: outcome unknown
//
// # Message
//
//	UUID                 of version 5, made of the dedup key: the same at every attempt
//	payload              that of the record
//	metadata ordered-*   process, sequence, epoch, attempt, position, dedup-key; key
//	                     and type if the record has them
//	traceparent          of the attempt's span, if there is one
//	other metadata       the headers of the record; none of them begins with "ordered-"
//	context              that of the call
//
// # What a Publisher must do
//
// The guarantees of the processor are as good as the Publisher's word:
//
//   - No loss: Publish returns nil only when the receiver has the message for good.
//     One that sends in the background and returns at once loses what it still had
//     when the program ends; those that can do both must be set to wait.
//   - Order: Publish does not send a message on its own time after it has returned
//     an error, and does not let a later message pass an earlier one, with retries
//     or several connections.
//   - Ends in time: Publish returns soon after the context of its message is over.
//     If it does not, Deliver does, and the next one waits for it.
//   - Errors are taken as transient, unless the Publisher, or one around it, returns
//     them marked with processor.Permanent.
//
// # Invariants
//
//   - Publish is called with one message, never by two calls at a time.
//   - Nothing is published behind a message whose Publish has not returned.
//   - A Publisher that panics does so in the call of Deliver, or in none.
//   - The Publisher is the caller's: it is not closed here.
//
// # Left out
//
// Batches: of several messages a Publisher does not say how many went. The daemon's
// configuration: a Publisher is Go code.
package watermill
