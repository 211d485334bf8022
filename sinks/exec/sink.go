package exec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/jsonline"
)

// Sink hands records to a child process. It implements processor.BatchSink and is
// safe for concurrent use; calls take turns on its one child.
type Sink struct {
	config  Config
	program child.Program
	secrets *child.Redactor

	mu    sync.Mutex
	child *run // nil: to be started
	buf   bytes.Buffer
}

var (
	_ processor.BatchSink = (*Sink)(nil)
	_ sinks.Renderer      = (*Sink)(nil)
)

// New makes a sink. The child is started with the first delivery, not before. New fails where Config.Validate does.
// It also fails if Config.User is not an account of this machine, or if this process is not root and so cannot change
// to it.
func New(c Config) (*Sink, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := c.program()
	var err error
	if p.Account, err = child.AccountOf(c.User, os.Geteuid()); err != nil {
		return nil, fmt.Errorf("configure exec sink: %w", err)
	}
	c = c.withDefaults()
	return &Sink{config: c, program: p, secrets: newRedactor(c)}, nil
}

// String names the program.
func (s *Sink) String() string { return s.config.String() }

// GoString is String, so that no verb prints a secret.
func (s *Sink) GoString() string { return s.String() }

// Close ends the child: with the end of its input and SIGTERM, and after Config.Grace with SIGKILL. A later delivery
// starts another.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		s.child.stop(s.config.Grace)
		s.child = nil
	}
	return nil
}

// DeliverBatch writes records to the child in order. It returns how many of them, from the first on, the child has
// answered with ok. An error whose Timeout() is true leaves the outcome of its record unknown.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(ds) == 0 {
		return 0, nil
	}
	k, err := s.ready(ctx, ds[0].Process)
	if err != nil {
		return 0, s.unsent(err)
	}
	defer context.AfterFunc(ctx, k.Kill)() // a write that the child does not read ignores the context
	n, err := s.exchange(ctx, k, ds)
	if err != nil && !outcome.IsAboutRecord(err) {
		k.end()
		s.child = nil
	}
	return n, err
}

// ready returns a running child.
func (s *Sink) ready(ctx context.Context, process string) (*run, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.child != nil && !s.child.Running() {
		s.config.Logger.Warn("the child ended between two records, and is restarted", "process", process, "err", s.child.end()+s.child.words.tail())
		s.child = nil
	}
	if s.child != nil && len(s.child.answers) > 0 {
		s.config.Logger.Warn("the child wrote a line without a request, and is restarted", "process", process)
		s.child.end()
		s.child = nil
	}
	if s.child != nil {
		return s.child, nil
	}
	k, err := start(s.program, s.config.Window, newWords(s.config, process))
	if err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	s.child = k
	return k, nil
}

// exchange keeps the window full and takes the answers in order.
func (s *Sink) exchange(ctx context.Context, k *run, ds []processor.Delivery) (acknowledged int, err error) {
	var failure error // of the record that could not be written
	for sent := 0; acknowledged < len(ds); {
		for failure == nil && sent < len(ds) && sent-acknowledged < s.config.Window {
			if failure = s.send(ctx, k, ds[sent]); failure == nil {
				sent++
			}
		}
		if sent == acknowledged {
			return acknowledged, failure
		}
		if err := s.answered(ctx, k, ds[acknowledged]); err != nil {
			if outcome.IsAboutRecord(err) {
				s.drain(ctx, k, ds[acknowledged+1:sent])
			}
			return acknowledged, err
		}
		acknowledged++
	}
	return acknowledged, nil
}

// send writes the line of a record.
func (s *Sink) send(ctx context.Context, k *run, d processor.Delivery) error {
	defer s.reset()
	if err := s.appendLine(&s.buf, d); err != nil {
		return err
	}
	k.words.given(d)
	if err := k.send(s.buf.Bytes(), s.config.Timeout); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return s.unheard(k, d, err)
	}
	return nil
}

// Render returns the line of a record.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	var line bytes.Buffer
	if err := s.appendLine(&line, d); err != nil {
		return sinks.Call{}, err
	}
	return sinks.Call{Target: s.String(), Body: line.Bytes()}, nil
}

// appendLine makes the line of a record, or returns a Permanent error.
func (s *Sink) appendLine(buf *bytes.Buffer, d processor.Delivery) error {
	if err := jsonline.Append(buf, d, s.config.MaxBytes); err != nil {
		return s.refusal(d, processor.Permanent(fmt.Errorf("%w: raise max_bytes or make the row smaller", err)))
	}
	return nil
}

// maxKept bounds the buffer that is kept for the next line.
const maxKept = 64 << 10

func (s *Sink) reset() {
	s.buf.Reset()
	if s.buf.Cap() > maxKept {
		s.buf = bytes.Buffer{}
	}
}

// answered waits for the child's answer to a record.
func (s *Sink) answered(ctx context.Context, k *run, d processor.Delivery) error {
	wait, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("no answer within %v: %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	line, err := k.next(wait)
	if err == errEnded && ctx.Err() != nil { // we killed the child
		err = context.Cause(ctx)
	}
	if err != nil {
		return s.failed(k, d, err)
	}
	a, err := parseAnswer(line, d)
	if err != nil {
		return s.failed(k, d, err)
	}
	if err := s.failure(a, d); err != nil {
		return s.refusal(d, err)
	}
	return nil
}

// drain takes the answers to records after a refused one. They count for nothing, but the next attempt must not find
// them. A child that does not give them is ended.
func (s *Sink) drain(ctx context.Context, k *run, ds []processor.Delivery) {
	for _, d := range ds {
		if err := s.answered(ctx, k, d); err != nil && !outcome.IsAboutRecord(err) {
			s.child = nil
			return
		}
	}
}
