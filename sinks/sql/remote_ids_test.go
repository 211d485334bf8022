package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// TestRemote_IdsThatComeAgainForOtherRowsAreNotTakenForApplied: with order id the rows of the new
// primary stand where lost ones stood, and come one by one. None is acknowledged.
func TestRemote_IdsThatComeAgainForOtherRowsAreNotTakenForApplied(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, stamped(sinktest.Deliveries(1, 5)))
	again := promoted(3, 3)
	for i := range again {
		again[i].CreatedAt = again[i].CreatedAt.Add(time.Hour)
	}
	for n := 1; n <= len(again); n++ {
		got, err := sinktest.Deliver(t, s, again[:n])
		require.ErrorIs(t, err, sql.ErrHistory, n)
		require.True(t, processor.IsUnreached(err), err)
		require.Zero(t, got, n)
	}
	require.Equal(t, "1 2 3 4 5", r.ids(t))
}
