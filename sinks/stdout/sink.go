package stdout

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/jsonline"
)

// Sink writes lines. It implements processor.Sink and is safe for concurrent
// use.
type Sink struct {
	turn   chan struct{} // holds one element while a write is under way, which owns the rest
	buf    bytes.Buffer
	writer lineWriter
}

var (
	_ processor.Sink = (*Sink)(nil)
	_ sinks.Renderer = (*Sink)(nil)
)

// New makes a sink. The writer stays the caller's: the sink never closes it.
func New(c Config) (*Sink, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure stdout sink: %w", err)
	}
	return &Sink{writer: lineWriter{w: c.Writer}, turn: make(chan struct{}, 1)}, nil
}

// Deliver writes the record as one line. If ctx ends first, the line may still come.
func (s *Sink) Deliver(ctx context.Context, d processor.Delivery) error {
	if ctx.Err() != nil { // select would choose at random
		return fmt.Errorf("write record %q: %w", visible.Cut(d.ID), context.Cause(ctx))
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("write record %q: an earlier write has not ended: check that a program reads the output: %w", visible.Cut(d.ID), context.Cause(ctx))
	}
	// A write to a pipe that no one reads does not end with a context, hence the goroutine.
	done := make(chan error, 1)
	go func() {
		done <- s.write(d)
		<-s.turn
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done: // if both are ready: a written line is delivered
		return err
	default:
		return fmt.Errorf("write record %q: the write has not ended: check that a program reads the output: %w", visible.Cut(d.ID), context.Cause(ctx))
	}
}

// Pending reports whether a write is under way that a call has not waited for. A sink that replaced this one would write
// into its line.
func (s *Sink) Pending() bool { return len(s.turn) > 0 }

// maxKept bounds the buffer that is kept for the next line.
const maxKept = 64 << 10

func (s *Sink) write(d processor.Delivery) (err error) {
	defer s.reset()
	defer func() { // the processor cannot recover this: it is another goroutine
		if value := recover(); value != nil {
			err = fmt.Errorf("write record %q: the writer panicked: %v", visible.Cut(d.ID), value)
		}
	}()
	if err := appendLine(&s.buf, d); err != nil {
		return err
	}
	if err := s.writer.writeLine(s.buf.Bytes()); err != nil {
		return fmt.Errorf("write record %q: %w", visible.Cut(d.ID), err)
	}
	return nil
}

// Render returns the line of a record.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	var line bytes.Buffer
	if err := appendLine(&line, d); err != nil {
		return sinks.Call{}, err
	}
	return sinks.Call{Target: "stdout", Body: line.Bytes()}, nil
}

// appendLine makes the line of a record, or returns a Permanent error.
func appendLine(buf *bytes.Buffer, d processor.Delivery) error {
	if err := jsonline.Append(buf, d, bound(d)); err != nil {
		return processor.Permanent(fmt.Errorf("write record %q: %w: make the row smaller", visible.Cut(d.ID), err))
	}
	return nil
}

// maxLine bounds a line, unless the record itself has more than half of it.
const maxLine = 128 << 20

// bound returns the bound for the line of a record: escapes may not make it more than twice the record's size, where
// that is large.
func bound(d processor.Delivery) int {
	size := len(d.ID) + len(d.Key) + len(d.Type) + len(d.Payload)
	for name, value := range d.Headers {
		size += len(name) + len(value)
	}
	return max(maxLine, 2*size)
}

func (s *Sink) reset() {
	s.buf.Reset()
	if s.buf.Cap() > maxKept {
		s.buf = bytes.Buffer{}
	}
}

// lineWriter takes one whole line at a time.
type lineWriter struct {
	w    io.Writer
	torn bool // the output ends within a line
}

// writeLine writes a line and flushes it.
func (l *lineWriter) writeLine(line []byte) error {
	if l.torn {
		if _, err := l.write([]byte{'\n'}); err != nil {
			return fmt.Errorf("end the torn line: %w", err)
		}
		l.torn = false
	}
	n, err := l.write(line)
	l.torn = n > 0 && n < len(line)
	if err != nil {
		return err
	}
	if f, ok := l.w.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}

// write treats a short write as an error, even if the writer does not.
func (l *lineWriter) write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}
