package rabbitmq_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Whole windows come back, since no queue is bound. Then one is, and the word on the
// first attempts is none on the second ones.
func TestDeliverBatch_AReturnIsOfOneAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *rabbitmq.Config) { c.Window = 4 })
	const rounds = 20
	for round := range rounds {
		ds := sinktest.Deliveries(4*round+1, 4)
		for i := range ds {
			ds[i].Type = "other"
		}
		restore := b.refuse(t)
		n, err := s.DeliverBatch(t.Context(), ds)
		require.ErrorContains(t, err, "312 NO_ROUTE")
		require.Zero(t, n)
		restore()
		n, err = s.DeliverBatch(t.Context(), ds)
		require.NoError(t, err)
		require.Equal(t, 4, n)
	}
	all := b.read(t)
	require.Len(t, all, 4*rounds)
	for i, m := range all {
		require.Equal(t, fmt.Sprint(i+1), m.Headers["ordered-sequence"])
	}
}
