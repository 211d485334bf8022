package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestRemote_AppliesTheRecordsBeforeAPayloadThatIsNotWhole(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	ds := sinktest.Deliveries(1, 3)
	ds[1].Headers = map[string]string{"claim-check": "8f"}
	n, err := s.DeliverBatch(t.Context(), ds)
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, "its payload is a claim check")
	require.True(t, processor.IsRefused(err), "the record is not at fault")
	require.Equal(t, ds[0].ID, r.ids(t))

	ds[1].Headers = nil // once the process resolves it
	sinktest.Delivered(t, s, ds[1:])
}
