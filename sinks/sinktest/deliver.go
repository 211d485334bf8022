package sinktest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Deliver calls sink.DeliverBatch under a context that ends after a minute, and returns its results.
func Deliver(t testing.TB, sink processor.BatchSink, ds []processor.Delivery) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return sink.DeliverBatch(ctx, ds)
}

// Delivered does what Deliver does, and fails the test unless all deliveries are acknowledged without an error.
func Delivered(t testing.TB, sink processor.BatchSink, ds []processor.Delivery) {
	t.Helper()
	n, err := Deliver(t, sink, ds)
	require.NoError(t, err)
	require.Equal(t, len(ds), n)
}

// Under returns a copy of the deliveries as a worker with another epoch makes them. Those of Deliveries have epoch 3.
func Under(epoch cursor.Epoch, ds []processor.Delivery) []processor.Delivery {
	ds = slices.Clone(ds)
	for i := range ds {
		ds[i].Epoch = epoch
	}
	return ds
}
