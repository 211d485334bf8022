// Package watermill delivers each record as one message through a Publisher of Watermill,
// github.com/ThreeDotsLabs/watermill: to any system that has a Publisher.
//
// # Nouns
//
//   - Sink: a Publisher, and the topic of each record.
//   - Turn: the right to call Publish. One call has it at a time. It keeps the turn until the Publisher returns, even
//     if no one waits for that any more.
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
//	payload              of the record
//	metadata ordered-*   process, sequence, epoch, attempt, position, dedup-key; key
//	                     and type if the record has them
//	traceparent          of the attempt's span, if there is one
//	other metadata       the headers of the record; none of them begins with "ordered-"
//	context              of the call
//
// # What a Publisher must do
//
// The guarantees of the processor hold only if the Publisher keeps these rules:
//
//   - No loss: Publish returns nil only when the receiver has the message for good. A Publisher that sends in the
//     background and returns at once loses the rest of its messages when the program ends. If a Publisher can do both,
//     configure it to wait.
//   - Order: after Publish has returned an error, it does not send the message later on its own. It does not let a
//     later message pass an earlier one, with retries or several connections.
//   - Ends in time: Publish returns soon after the context of its message is over. If it does not, Deliver does, and
//     the next Deliver waits for it.
//   - Errors are taken as transient, unless the Publisher, or one around it, returns them marked with
//     processor.Permanent.
//
// # Invariants
//
//   - Publish is called with one message, never by two calls at a time.
//   - Nothing is published after a message whose Publish has not returned.
//   - If a Publisher panics, the panic appears in the call of Deliver, or nowhere.
//   - The Publisher belongs to the caller: this package does not close it.
//
// # Left out
//
// Batches: a Publisher does not report how many of several messages were sent. The daemon's configuration: a
// Publisher is Go code.
package watermill
