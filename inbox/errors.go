package inbox

import (
	"errors"
	"fmt"
)

// ErrStreamGaps means that a receiver with RefuseGaps got a message with a Stream. Nothing is noted, and each further
// message would be refused, too.
var ErrStreamGaps = errors.New("inbox: RefuseGaps is set, and the message has a Stream. A stream has only some records of its process, so numbers are missing in it by nature: " +
	"set RefuseGaps to false, or leave Message.Stream empty if all records of the process come in one order")

// VersionError means that the message follows another version of the contract than this package knows. The record is
// not at fault. Answer 409.
type VersionError struct {
	Version string // "ordered-version" of the message
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("inbox: the record follows version %.50q of the contract, and this receiver knows version %s: upgrade the one that is older", e.Version, knownVersion)
}

// OriginError means that another cursor sent the message than the one before: another database has a process of that
// name. Answer 409. AcceptOrigin accepts it.
type OriginError struct {
	Message Message
	Noted   string // the origin of the records before
}

func (e *OriginError) Error() string {
	return fmt.Sprintf("inbox: record %q of process %q has origin %q, and the records before have %q: two senders use one name. If this one has replaced the other, accept its origin (AcceptOrigin)",
		e.Message.DedupKey, e.Message.Process, e.Message.Origin, e.Noted)
}

// StaleError means that a worker sent the message that has been superseded. Answer 409.
type StaleError struct {
	Message Message
	Seen    int64 // the largest epoch of the process, in this stream
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("inbox: record %q of process %q has epoch %d, and epoch %d has come: another worker has taken over", e.Message.DedupKey, e.Message.Process, e.Message.Epoch, e.Seen)
}

// LateError means that the message comes after a record that was sent after it: meanwhile its own record was put aside
// or skipped. Answer 409.
type LateError struct {
	Message Message
	Last    int64 // the sequence of the last record
}

func (e *LateError) Error() string {
	return fmt.Sprintf("inbox: record %q of process %q comes late: it has number %d, and number %d has come", e.Message.DedupKey, e.Message.Process, e.Message.Sequence, e.Last)
}

// GapError means that records before the message have not come. Answer 428. AcceptGap accepts the gap.
type GapError struct {
	Message Message
	Last    int64 // the sequence of the last record
}

func (e *GapError) Error() string {
	return fmt.Sprintf("inbox: record %q of process %q has number %d, and the last one that came is %d: seek back to before that one, or accept the gap (AcceptGap)",
		e.Message.DedupKey, e.Message.Process, e.Message.Sequence, e.Last)
}
