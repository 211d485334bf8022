package redis

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

const (
	fieldPayload = "payload"
	// maxHeaders bounds the headers of a record: a script hands at most 8,000 values on.
	maxHeaders = 2000
	// windowBytes bounds what goes out together. One record may have more.
	windowBytes = 1 << 20
	// leastMarks is how many records of a process Redis knows again. A larger call has it know as many as the call has.
	leastMarks = 1000
)

// entry is a record on its way.
type entry struct {
	delivery processor.Delivery
	stream   string
	fields   []any
	size     int
}

// entry makes the stream entry of a record. What the stream cannot take is a Permanent error. limit is how many bytes a
// value may have; 0 is not known.
func (s *Sink) entry(d processor.Delivery, limit int64) (entry, error) {
	e := entry{delivery: d}
	var err error
	if e.stream, err = s.stream.Of(d); err != nil {
		return e, refused("its stream: %w; correct stream, or skip the record", err)
	}
	if e.stream == "" || s.config.ofState(e.stream) {
		return e, refused("its stream is %q, which is empty or a key of state: correct stream, or skip the record", s.stream.Shown(e.stream))
	}
	if len(d.Headers) > maxHeaders {
		return e, refused("it has %d headers, and may have %d: make the row smaller, or skip the record", len(d.Headers), maxHeaders)
	}
	wire.Each(d, func(name, value string) { e.add(name, value) })
	for name, value := range d.Headers {
		if !wire.Ours(name) && name != fieldPayload {
			e.add(name, value)
		}
	}
	e.fields = append(e.fields, fieldPayload, []byte(d.Payload))
	e.size += len(d.Payload)
	if largest := e.largest(); limit > 0 && int64(largest) > limit {
		return e, refused("a value of it has %d bytes, and Redis takes %d: raise proto-max-bulk-len, or skip the record", largest, limit)
	}
	return e, nil
}

func (e *entry) add(name, value string) {
	e.fields = append(e.fields, name, value)
	e.size += len(name) + len(value)
}

// largest is the size of the largest field or value.
func (e *entry) largest() (size int) {
	for _, field := range e.fields {
		switch f := field.(type) {
		case string:
			size = max(size, len(f))
		case []byte:
			size = max(size, len(f))
		}
	}
	return size
}

// keys are the keys that the script uses. A process has one state for all its streams. The state is named after the
// cursor, so a process of the same name in another database has a state of its own.
func (s *Sink) keys(e entry) []string {
	state := s.stateOf(e.delivery)
	return []string{state, state + ":marks", e.stream}
}

func (s *Sink) stateOf(d processor.Delivery) string {
	return s.config.State + ":" + cmp.Or(d.Origin, d.Process)
}

// arguments are those of the script, behind a record that must be there; keep is how many marks stay.
func (s *Sink) arguments(e entry, k kind, after int64, keep int) []any {
	d := e.delivery
	return append([]any{
		d.Process, strconv.FormatInt(int64(d.Epoch), 10), workerOf(d), strconv.FormatInt(d.Sequence, 10), markOf(d), strconv.FormatInt(after, 10), string(k),
		max(keep, leastMarks) - 1, s.config.MaxLen,
	}, e.fields...)
}

// kind is what a record follows.
type kind string

const (
	first   kind = "first"   // nothing
	next    kind = "next"    // what the sink knows to be there
	chained kind = "chained" // the one before it in the pipeline
	replay  kind = "replay"  // nothing: it is a dead letter, out of its turn
)

func kindOf(d processor.Delivery, before bool) kind {
	switch {
	case d.After == d.Position:
		return replay
	case before:
		return chained
	case cursor.IsFirst(d.Sequence, d.Epoch):
		return first
	default:
		return next
	}
}

// markOf tells a record from every other one. The payload is not in it: where a row was changed between two attempts, the
// version that came first stays.
func markOf(d processor.Delivery) string {
	return digest(strconv.FormatInt(d.Sequence, 10), string(d.Position), d.DedupKey())
}

// workerOf is a digest of the worker's name, which has that of its host. "" is not known.
func workerOf(d processor.Delivery) string {
	if d.Worker == "" {
		return ""
	}
	return digest(d.Worker)
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
