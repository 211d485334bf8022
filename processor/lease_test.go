package processor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// batches takes whole pages.
type batches struct{}

func (batches) DeliverBatch(_ context.Context, ds []processor.Delivery) (int, error) {
	return len(ds), nil
}

// TestMaxLease_IsThatOfTheCallsBetweenTwoCheckpoints: after 5 s, half of the lease's
// time-out, for which a read is waited for.
func TestMaxLease_IsThatOfTheCallsBetweenTwoCheckpoints(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for want, dispatch := range map[time.Duration]processor.Dispatch{
		35 * time.Second: processor.Each(&receiver{}),
		15 * time.Second: processor.Batch(batches{}),
		65 * time.Second: processor.InTx(&receiver{}), // three calls of 15 s, and the check of constraints
	} {
		p := process(t, pool, dispatch, func(c *processor.Config) { c.Timeout, c.Checkpoint = 10*time.Second, 3 })
		require.Equal(t, want, p.MaxLease())
	}
}

// TestObserve_EachLeaseBeginsAndEndsOnce: also one that is let go after a failure.
func TestObserve_EachLeaseBeginsAndEndsOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 5)
	var seen events
	p := process(t, pool, processor.Each(&receiver{answer: failing("2", 1, errRefused)}), func(c *processor.Config) {
		c.Observe = seen.observe
		c.Retry.Initial, c.Retry.Max = 2*time.Second, 2*time.Second // longer than any wait under a lease
	})
	require.NoError(t, p.Drain(t.Context()))
	held := 0
	for _, e := range seen.all {
		switch e.Kind {
		case processor.EventLease:
			held++
		case processor.EventRelease:
			held--
		case processor.EventAttempt, processor.EventAdvance:
			require.Equal(t, 1, held)
		}
		require.Contains(t, []int{0, 1}, held)
	}
	require.Zero(t, held)
	require.GreaterOrEqual(t, len(seen.of(processor.EventLease)), 2)
}
