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
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// stepping is a source whose server's clock steps back, to before a position.
type stepping struct {
	*table.Source
	to   atomic.Pointer[cursor.Position] // nil: it is right
	anew bool                            // it is so since the server was started
	seen atomic.Bool
}

func (s *stepping) Clock(ctx context.Context, at cursor.Position) error {
	to := s.to.Load()
	if to == nil || at <= *to {
		return s.Source.Clock(ctx, at)
	}
	s.seen.Store(true)
	late := processor.Late{From: *to, Reason: "the clock stepped back"}
	if s.anew {
		late.From = ""
	}
	return &processor.ClockError{Late: late, Err: errors.New("the clock stepped back")}
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
			if d.ID == "3" && !accepts.Load() {
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
		return func() { accepts.Store(true) }
	},
	"paused": func(*testing.T, *pgxpool.Pool, *receiver) func() { return func() {} },
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
			started(t, pool, sink, s, name)
			s.step(t, pool, sink.all()[0].Position)
			goOn()
			haltsOverTheClock(t, pool)
			if name == "a page under way" {
				require.Empty(t, sink.attemptsOf("3"), "no further record is handed over")
			}
			at := cursor.Position(between(row(t, pool).Failure.Error, "--to-position ", " -c"))
			seek(t, pool, at)
			if name == "paused" {
				decide(t, pool, (*operator.Operator).Resume)
			}
			eventually(t, "what was stamped meanwhile is delivered", func() bool { return len(sink.attemptsOf("4")) == 1 })
			eventually(t, "the others follow", func() bool { return row(t, pool).State == cursor.Running && row(t, pool).Failure == nil })
		})
	}
}

// started runs a worker that looks at the clock of a source, and has delivered a record; of a process that is to be paused, all.
func started(t *testing.T, pool *pgxpool.Pool, sink *receiver, s *stepping, name string) (stop func() error) {
	t.Helper()
	stop = start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		quick(c)
		c.Source, c.Poll, c.Grace = s, 20*time.Millisecond, time.Second
	}))
	eventually(t, "the first one is delivered", func() bool { return row(t, pool).Sequence >= 1 })
	switch name {
	case "paused":
		eventually(t, "all are delivered", func() bool { return row(t, pool).Sequence == 3 })
		decide(t, pool, (*operator.Operator).Pause)
	case "halted over a record":
		eventually(t, "it is halted", func() bool { return row(t, pool).State == cursor.Halted })
	}
	return stop
}

func haltsOverTheClock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	eventually(t, "it halts over the clock", func() bool {
		row := row(t, pool)
		return row.Failure != nil && row.Failure.Class == cursor.ClassClock && row.State != cursor.Running
	})
}

// TestRun_AStepOfTheClockOutlivesItsWorker: the row has it before anything is read again.
func TestRun_AStepOfTheClockOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	for name, hold := range unread {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			sink, s := &receiver{}, &stepping{Source: source(t, pool), anew: true}
			hold(t, pool, sink)
			stop := started(t, pool, sink, s, name)
			s.step(t, pool, sink.all()[0].Position)
			if err := stop(); !errors.Is(err, processor.ErrGrace) {
				require.NoError(t, err)
			}
			require.Equal(t, cursor.ClassClock, row(t, pool).Failure.Class)
			require.Empty(t, row(t, pool).Failure.Position, "where the rows begin is not known")
			require.Contains(t, row(t, pool).Failure.Error, "the clock stepped back. Once the clock has passed the cursor, `ordered-dispatcher retry sms")
		})
	}
}

// TestRun_AWorkerThatHasReadNothingLooksAtTheClock: it came when the process was paused.
func TestRun_AWorkerThatHasReadNothingLooksAtTheClock(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	sink, s := &receiver{}, &stepping{Source: source(t, pool)}
	require.NoError(t, started(t, pool, sink, s, "paused")())
	next := &stepping{Source: source(t, pool)}
	stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		quick(c)
		c.Source, c.Poll = next, 20*time.Millisecond
	}))
	next.step(t, pool, sink.all()[0].Position)
	haltsOverTheClock(t, pool)

	further := cursor.Position("")
	next.seen.Store(false)
	next.to.Store(&further) // the clock steps back again, further
	eventually(t, "the row has the lower place", func() bool { return row(t, pool).Failure.Position == "" })
	next.to.Store(nil)
	require.NoError(t, stop())
	require.Equal(t, cursor.Paused, row(t, pool).State)
	require.True(t, next.seen.Load())
}
