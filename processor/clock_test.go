package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// stepping is a source whose server's clock steps back, to before a position.
type stepping struct {
	*table.Source
	to   atomic.Pointer[cursor.Position] // nil: it is right
	seen atomic.Bool
}

func (s *stepping) Clock(ctx context.Context, at cursor.Position) error {
	if to := s.to.Load(); to != nil && at > *to {
		s.seen.Store(true)
		return &processor.ClockError{Late: processor.Late{From: *to, Reason: "the clock stepped back"}, Err: errors.New("the clock stepped back")}
	}
	return s.Source.Clock(ctx, at)
}

// step sets the clock back to where the first record stands until somebody has seen it, inserts a record by it, and sets it right.
func (s *stepping) step(t *testing.T, pool *pgxpool.Pool, first cursor.Position) {
	t.Helper()
	s.to.Store(&first)
	exec(t, pool, `INSERT INTO dispatch.bookings (customer, created_at) SELECT 'late', min(created_at) + interval '1 microsecond' FROM dispatch.bookings`)
	eventually(t, "the step is seen", s.seen.Load)
	s.to.Store(nil)
}

// unread are the states of a process in which nothing is read; each ends with the process going on.
var unread = map[string]func(t *testing.T, pool *pgxpool.Pool, sink *receiver) (goOn func()){
	"a page under way": func(t *testing.T, _ *pgxpool.Pool, sink *receiver) func() {
		goOn := make(chan struct{})
		sink.answer = func(ctx context.Context, d processor.Delivery) error {
			if d.ID == "2" {
				select {
				case <-goOn:
				case <-ctx.Done():
				}
			}
			return nil
		}
		return func() { close(goOn) }
	},
	"a record that fails": func(t *testing.T, _ *pgxpool.Pool, sink *receiver) func() {
		var accepts atomic.Bool
		sink.answer = func(_ context.Context, d processor.Delivery) error {
			if d.ID == "2" && !accepts.Load() {
				return processor.RetryAfter(errRefused, time.Second)
			}
			return nil
		}
		return func() { accepts.Store(true) }
	},
	"halted over a record": func(t *testing.T, pool *pgxpool.Pool, sink *receiver) func() {
		var accepts atomic.Bool
		sink.answer = func(_ context.Context, d processor.Delivery) error {
			if d.ID == "3" && !accepts.Load() {
				return processor.Permanent(errRefused)
			}
			return nil
		}
		return func() {
			eventually(t, "it is halted", func() bool { return row(t, pool).State == cursor.Halted })
			accepts.Store(true)
			_, err := store(t, pool).Retry(t.Context(), "sms", alice)
			require.NoError(t, err)
		}
	},
	"paused": func(t *testing.T, pool *pgxpool.Pool, _ *receiver) func() {
		return func() {
			_, err := store(t, pool).Resume(t.Context(), "sms", alice)
			require.NoError(t, err)
		}
	},
}

// TestRun_AClockThatSteppedBackWhileNothingWasReadHaltsTheProcess: what it has stamped stands before what was read.
func TestRun_AClockThatSteppedBackWhileNothingWasReadHaltsTheProcess(t *testing.T) {
	t.Parallel()
	for name, hold := range unread {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			sink, s := &receiver{}, &stepping{Source: source(t, pool)}
			goOn := hold(t, pool, sink)
			start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
				quick(c)
				c.Source, c.Poll = s, 20*time.Millisecond
			}))
			eventually(t, "the first one is delivered", func() bool { return row(t, pool).Sequence >= 1 })
			if name == "paused" {
				eventually(t, "all are delivered", func() bool { return row(t, pool).Sequence == 3 })
				_, err := store(t, pool).Pause(t.Context(), "sms", alice)
				require.NoError(t, err)
			}
			s.step(t, pool, sink.all()[0].Position)
			goOn()
			eventually(t, "it halts over the clock", func() bool {
				f := row(t, pool).Failure
				return f != nil && f.Class == cursor.ClassClock && row(t, pool).State == cursor.Halted
			})
			at := cursor.Position(between(row(t, pool).Failure.Error, "--to-position ", " -c"))
			_, err := store(t, pool).Seek(t.Context(), "sms", at, cursor.Decision{Actor: "me", Reason: "as the error says"})
			require.NoError(t, err)
			eventually(t, "what was stamped meanwhile is delivered", func() bool { return len(sink.attemptsOf("4")) == 1 })
			eventually(t, "the others follow", func() bool { return row(t, pool).State == cursor.Running && row(t, pool).Failure == nil })
		})
	}
}
