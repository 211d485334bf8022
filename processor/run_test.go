package processor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestRun_OnShutdownFinishesTheCallInFlightAndAdvances(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 5)
	called, answer := make(chan struct{}), make(chan struct{})
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if d.ID == "2" {
			close(called)
			<-answer
		}
		return nil
	}}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Checkpoint = 4 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	<-called
	cancel()
	close(answer)
	require.NoError(t, <-done)
	require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
	require.EqualValues(t, 2, row(t, pool).Sequence, "what was acknowledged is durable")
	lease, err := store(t, pool).Acquire(t.Context(), "sms")
	require.NoError(t, err, "the lease is given back")
	lease.Release()
}

func TestRun_EndsACallThatOutlastsTheGracePeriod(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	called := make(chan struct{})
	sink := &receiver{answer: func(ctx context.Context, _ processor.Delivery) error {
		close(called)
		<-ctx.Done()
		return ctx.Err()
	}}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Grace = 50 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	<-called
	cancel()
	require.ErrorIs(t, <-done, processor.ErrGrace)
	require.Equal(t, []string{"1/1"}, sink.attempts())
	require.Zero(t, row(t, pool).Sequence)
	require.Nil(t, row(t, pool).Failure, "nothing is wrong with the record")
}

// TestRun_OneWorkerOfManyDelivers: all see every record, one is called.
func TestRun_OneWorkerOfManyDelivers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var mu sync.Mutex
	var got []processor.Delivery
	shared := processor.SinkFunc(func(_ context.Context, d processor.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, d)
		return nil
	})
	for range 3 {
		start(t, process(t, pool, processor.Each(shared), func(c *processor.Config) { c.Poll = 50 * time.Millisecond }))
	}
	for range 30 {
		insert(t, pool, 5)
	}
	eventually(t, "all delivered", func() bool { return row(t, pool).Sequence == 150 })
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, got, 150, "a run without a fault has no duplicate")
	for i, d := range got {
		require.EqualValues(t, i+1, d.Sequence)
		if i > 0 {
			require.Greater(t, d.Position, got[i-1].Position)
			require.GreaterOrEqual(t, d.Epoch, got[i-1].Epoch)
		}
	}
}

// TestRun_TheWorkerThatDeliveredLastKeepsTheFirstRight: a steady trickle of
// records does not change workers, although the lease is free between them.
func TestRun_TheWorkerThatDeliveredLastKeepsTheFirstRight(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{}
	insert(t, pool, 1)
	start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "the first delivers", func() bool { return sink.calls() == 1 })
	start(t, process(t, pool, processor.Each(sink), nil))
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for range 200 {
		<-ticker.C
		insert(t, pool, 1)
	}
	eventually(t, "all delivered", func() bool { return sink.calls() == 201 })
	require.LessOrEqual(t, row(t, pool).Epoch, cursor.Epoch(3), "at most a few changes in a second of work")
}

// TestRun_ReadsAheadWhileItDelivers: the second page is read during the first
// page's sink call, and not a third.
func TestRun_ReadsAheadWhileItDelivers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	reads := make(chan cursor.Position, 100)
	answer := make(chan struct{})
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { <-answer; return nil }}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Batch = 1
		c.Source = watched{source(t, pool), reads}
	})
	start(t, p)
	require.Equal(t, cursor.Position(""), <-reads)
	require.NotEmpty(t, <-reads, "read behind the first record, which is in flight")
	require.Empty(t, reads)
	require.LessOrEqual(t, sink.calls(), 1)
	close(answer)
	eventually(t, "all delivered", func() bool { return row(t, pool).Sequence == 3 })
}

// TestRun_ALargeRecordIsInMemoryByItself: what follows is read when it has been
// delivered and its room given back, and it is all delivered.
func TestRun_ALargeRecordIsInMemoryByItself(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	exec(t, pool, `UPDATE dispatch.bookings SET payload = to_jsonb(repeat('x', 8 << 20))`)
	events := make(chan string, 100)
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { events <- "deliver"; return nil }}
	require.NoError(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Batch = 1
		c.Source = recycling{source(t, pool), events}
	}).Drain(t.Context()))
	for range 3 {
		require.Equal(t, []string{"read", "deliver", "recycle"}, []string{<-events, <-events, <-events})
	}
	require.Equal(t, []string{"1/1", "2/1", "3/1"}, sink.attempts())
}

// recycling reports every read, and each time that it gets room back.
type recycling struct {
	processor.Source
	events chan<- string
}

func (r recycling) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	r.events <- "read"
	return r.Source.Read(ctx, after, limit)
}

func (r recycling) Recycle([]processor.Record) { r.events <- "recycle" }

// watched tells of every read.
type watched struct {
	processor.Source
	reads chan<- cursor.Position
}

func (w watched) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	select {
	case w.reads <- after:
	default:
	}
	return w.Source.Read(ctx, after, limit)
}

func TestStart_PutsANewCursorWhereItIsTold(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	all := &receiver{}
	require.NoError(t, process(t, pool, processor.Each(all), nil).Drain(t.Context()))

	rest := &receiver{}
	require.NoError(t, process(t, pool, processor.Each(rest), func(c *processor.Config) {
		c.Process, c.Start = "from a position", all.got[0].Position
	}).Drain(t.Context()))
	require.Equal(t, []string{"2/1", "3/1"}, rest.attempts())
	require.EqualValues(t, 1, rest.got[0].Sequence, "the sequence counts what this process delivers")

	fresh := &receiver{}
	end := func(c *processor.Config) { c.Process, c.Start = "from the end", processor.End }
	require.NoError(t, process(t, pool, processor.Each(fresh), end).Drain(t.Context()))
	require.Empty(t, fresh.attempts())
	insert(t, pool, 1)
	require.NoError(t, process(t, pool, processor.Each(fresh), end).Drain(t.Context()))
	require.Equal(t, []string{"4/1"}, fresh.attempts())
}

func TestDrain_ReturnsOnWhatWillNotPassByItself(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	p := process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) { c.Start = "at.int:2020" })
	require.ErrorContains(t, p.Drain(t.Context()), "malformed")
	_, err := store(t, pool).Look(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrUnknown, "no cursor was made at it")

	require.NoError(t, process(t, pool, processor.Each(&receiver{}), nil).Drain(t.Context()))
	exec(t, pool, `UPDATE dispatch.cursor SET state = 'paused'`)
	require.ErrorIs(t, process(t, pool, processor.Each(&receiver{}), nil).Drain(t.Context()), cursor.ErrPaused)
}

func TestNew_ReturnsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := processor.New(processor.Config{Process: "sms", Batch: -1, Poll: time.Millisecond, Retry: processor.Retry{Jitter: 101}})
	for _, fault := range []string{`process "sms"`, "no cursor store", "no source", "no dispatch",
		"batch must be between 1 and 10000, got -1", "poll must be between 5ms and 1m0s, got 1ms", "retry.jitter must be between 0% and 100%, got 101%"} {
		require.ErrorContains(t, err, fault)
	}
}
