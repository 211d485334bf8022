package nats_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Not parallel: it counts all memory that is allocated. An escape takes three bytes
// for one.
func TestWindow_WhatIsTooLongForHeadersFailsForGoodBeforeItIsEscaped(t *testing.T) {
	const size = 12 << 20
	b := newBench(t, nil)
	s := b.sink(t, window(1))
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	long := strings.Repeat("\x01", size)
	for name, grow := range map[string]func(*processor.Delivery){
		"key":     func(d *processor.Delivery) { d.Key = long },
		"headers": func(d *processor.Delivery) { d.Headers = map[string]string{"note": long} },
	} {
		ds := sinktest.Deliveries(2, 1)
		grow(&ds[0])
		before := allocated()
		n, err := sinktest.Deliver(t, s, ds)
		require.Zero(t, n, name)
		require.ErrorContains(t, err, "headers of NATS may have 8388608: make the row smaller", name)
		require.True(t, processor.IsPermanent(err), name)
		require.Less(t, allocated()-before, uint64(size), name)
	}
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1))
	require.Equal(t, "1 2", b.log(t))
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
