package processor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// The times are those of a limiter, not of the machine: fewer records may go out
// in a time on a slow one, never more.
func TestLimit_IsNeverExceeded(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 60)
	var mu sync.Mutex
	var at []time.Time
	sink := processor.SinkFunc(func(context.Context, processor.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
		return nil
	})
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Limit = processor.Limit{Records: 50, Per: time.Second}
		c.Checkpoint = 20
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Len(t, at, 60)
	const burst = 5
	for i := range at[:len(at)-burst] {
		for j := i + burst; j < len(at); j += burst {
			most := burst + int(at[j].Sub(at[i])*50/time.Second) + 1
			require.LessOrEqual(t, j-i, most, "records %d to %d", i, j)
		}
	}
}

// A wait longer than a second is not spent under the lease.
func TestLimit_LetsGoOfTheLeaseWhileItWaitsForLong(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	sink := &receiver{}
	var seen events
	stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Limit = processor.Limit{Records: 1, Per: time.Hour}
		c.Observe = seen.observe
	}))
	eventually(t, "the process waits", func() bool { return len(seen.of(processor.EventLimited)) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, store(t, pool).Await(ctx, "sms"))
	lease, err := store(t, pool).Acquire(t.Context(), "sms")
	require.NoError(t, err)
	lease.Release()
	require.NoError(t, stop())
	require.Equal(t, 1, sink.calls())
}

// While the receiver is down, attempts make no record poison, and nothing else is
// sent meanwhile.
func TestBreaker_AnOutageMakesNoRecordPoison(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 8)
	var mu sync.Mutex
	calls := map[string]int{}
	down := 12 // calls that fail
	sink := processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		calls[fmt.Sprintf("%s of %d", ds[0].ID, len(ds))]++
		if down--; down >= 0 {
			return 0, errRefused
		}
		return len(ds), nil
	})
	var seen events
	p := process(t, pool, processor.Batch(sink), func(c *processor.Config) {
		deadLetters(c) // after two attempts
		c.Breaker = processor.Breaker{Failures: 5, Cooldown: time.Millisecond}
		c.Observe = seen.observe
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, []string{"1/2", "2/2"}, letters(t, pool), "what failed before the breaker opened")
	require.Equal(t, 8, calls["3 of 1"], "probed alone until it went through: %v", calls)
	require.Equal(t, 1, calls["4 of 5"], "then in batches again: %v", calls)
	require.Len(t, seen.of(processor.EventBreaker), 8)
}

// What ails the database is not the record's fault: it neither counts nor halts.
func TestInTx_ADatabaseErrorIsNotCountedAgainstTheRecord(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	var mu sync.Mutex
	left := 3
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if left--; d.ID == "2" && left >= 0 {
			return fmt.Errorf("apply: %w", &pgconn.PgError{Code: "53100", Message: "disk full"})
		}
		return nil
	}}
	p := process(t, pool, processor.InTx(sink), func(c *processor.Config) { quick(c); c.Retry.Attempts = 1 })
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, []string{"1/1", "2/1", "2/1", "2/1"}, sink.attempts())
}

func TestLimit_UnmarshalTextReadsARate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]processor.Limit{
		"50/s": {Records: 50, Per: time.Second}, "100/m": {Records: 100, Per: time.Minute}, "1000000/h": {Records: 1_000_000, Per: time.Hour},
	} {
		var l processor.Limit
		require.NoError(t, l.UnmarshalText([]byte(text)))
		require.Equal(t, want, l)
	}
	for _, text := range []string{"", "50", "50/d", "1.5/s", "0/s", "1000001/s", "/s", "50/s/s"} {
		var l processor.Limit
		require.EqualError(t, l.UnmarshalText([]byte(text)), "is not a rate: write a whole number from 1 to 1000000, and a unit: 50/s, 100/m or 1000/h", text)
		require.Zero(t, l)
	}
}
