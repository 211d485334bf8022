package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// script appends a record, or says why not.
//
//go:embed append.lua
var source string

var script = redis.NewScript(source)

// Sink appends records to streams. It implements processor.BatchSink and is safe for concurrent use; calls take turns on
// its one connection.
type Sink struct {
	config Config
	server server
	stream *route.Template
	guard  secret.Guard

	mu   sync.Mutex
	link *link // nil: to be opened
	// there is the last record that Redis has acknowledged to this sink.
	there acknowledged
}

// acknowledged is the number of a record, of the process with that key of state.
type acknowledged struct {
	state    string
	sequence int64
}

var _ processor.BatchSink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure redis sink: %w", err)
	}
	server, _ := c.server() // validated
	stream, _ := route.Tokens(c.Stream)
	guard := secret.Guard{Secrets: secret.New(server.password), Said: words, Hide: c.HideAnswers}
	return &Sink{config: c, server: server, stream: stream, guard: guard}, nil
}

// String names the server and the stream.
func (s *Sink) String() string { return s.config.String() }

// GoString is String, so that no verb prints the password.
func (s *Sink) GoString() string { return s.String() }

// Close closes the connection. A later delivery opens another.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
	return nil
}

// DeliverBatch appends records in order and returns how many of them, from the first on, the streams have. An error that
// is a time-out (outcome.IsUnknown) leaves the outcome of its record unknown until the next attempt.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.deliver(ctx, ds)
	if err != nil && !outcome.IsAboutRecord(err) {
		s.drop()
	}
	return n, s.guard.Of(processor.Redact(ds)).Error(err)
}

// deliver appends a window of records after the other.
func (s *Sink) deliver(ctx context.Context, ds []processor.Delivery) (n int, err error) {
	again := false
	for n < len(ds) {
		if err := s.connect(ctx); err != nil {
			return n, s.unsent(err)
		}
		window, fault := s.window(ds[n:])
		if len(window) == 0 {
			s.begin(ctx, ds[n])
			return n, s.refusal(ds[n], fault)
		}
		done, err := s.append(ctx, window, len(ds))
		n += done
		if errors.Is(err, errNoScript) && !again { // nothing after it was appended, either
			s.link.loaded, again = false, true
			continue
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// window is the records that go out together, and why the one after them does not go out at all.
func (s *Sink) window(ds []processor.Delivery) (entries []entry, err error) {
	size := 0
	for _, d := range ds[:min(len(ds), s.config.Window)] {
		alone := d.After == d.Position || s.stateOf(d) != s.stateOf(ds[0]) // a replay is in no chain
		if alone && len(entries) > 0 {
			break
		}
		e, err := s.entry(d, s.link.limit)
		if err != nil {
			return entries, err
		}
		if size += e.size; size > windowBytes && len(entries) > 0 {
			break
		}
		entries = append(entries, e)
		if alone {
			break
		}
	}
	return entries, nil
}

// append has Redis append a window, each record only if the one before it is there. call is how many records come again
// together if this worker dies.
func (s *Sink) append(ctx context.Context, window []entry, call int) (n int, err error) {
	ctx, end := s.link.within(ctx, s.config.Timeout)
	defer end()
	if ctx.Err() != nil {
		return 0, s.unsent(context.Cause(ctx))
	}
	before := s.link.socket.written.Load()
	answers := s.send(ctx, window, call)
	for i, answer := range answers {
		if err := s.answered(ctx, window[i], answer, before); err != nil {
			return i, err
		}
		s.link.loaded = true
		s.acknowledge(window[i].delivery)
	}
	return len(window), nil
}

// send sends a window as one pipeline. Each answer has its own error.
func (s *Sink) send(ctx context.Context, window []entry, call int) []*redis.Cmd {
	answers := make([]*redis.Cmd, len(window))
	pipe := s.link.conn.Pipeline()
	after := s.thereOf(window[0].delivery)
	for i, e := range window {
		keys, arguments := s.keys(e), s.arguments(e, kindOf(e.delivery, i > 0), after, call)
		if i == 0 && !s.link.loaded {
			answers[i] = script.Eval(ctx, pipe, keys, arguments...) // with its text, which Redis keeps for those after it
		} else {
			answers[i] = script.EvalSha(ctx, pipe, keys, arguments...)
		}
		after = e.delivery.Sequence
	}
	_, _ = pipe.Exec(ctx)
	return answers
}

// acknowledge notes that a record is there. A replay has an older number.
func (s *Sink) acknowledge(d processor.Delivery) {
	s.there = acknowledged{s.stateOf(d), max(s.thereOf(d), d.Sequence)}
}

// thereOf is the last number of a record's process that Redis has acknowledged; 0 is not known.
func (s *Sink) thereOf(d processor.Delivery) int64 {
	if s.there.state != s.stateOf(d) {
		return 0
	}
	return s.there.sequence
}

// begin has Redis know of a process whose first record does not go out. Without it, the second one would find nothing
// there, and say that something was lost.
func (s *Sink) begin(ctx context.Context, d processor.Delivery) {
	if kindOf(d, false) != first {
		return
	}
	ctx, end := s.link.within(ctx, s.config.Timeout)
	defer end()
	_ = s.link.conn.HSetNX(ctx, s.stateOf(d), "process", d.Process).Err() // then it says that
}

// answered is what Redis says of a record; nil if it is there.
func (s *Sink) answered(ctx context.Context, e entry, answer *redis.Cmd, before int64) error {
	said, err := answer.StringSlice()
	switch {
	case err == nil && len(said) == 2:
		return s.verdict(e.delivery, said[0], said[1])
	case err == nil:
		return s.failed(errNoVerdict)
	case code(err) == codeNoScript:
		return fmt.Errorf("%w: %w", errNoScript, s.notTaken(err))
	case s.deniesKey(ctx, e, err):
		s.begin(ctx, e.delivery)
		return s.refusal(e.delivery, refused("the user has no right to the key that stream makes of it: %s, correct stream, or skip the record", fixRights))
	case isAnswer(err):
		return s.notTaken(err)
	case s.link.socket.written.Load() == before:
		return s.unsent(ended(ctx, heard(err)))
	default:
		return s.failed(ended(ctx, heard(err)))
	}
}

// deniesKey reports whether Redis denies the key that the record has chosen, and not those of the state: another record
// may have a key that the user has the right to.
func (s *Sink) deniesKey(ctx context.Context, e entry, err error) bool {
	if code(err) != codeNoPermission || s.stream.Fixed() {
		return false
	}
	keys := s.keys(e)
	return s.link.conn.Exists(ctx, keys[:2]...).Err() == nil && code(s.link.conn.Exists(ctx, e.stream).Err()) == codeNoPermission
}
