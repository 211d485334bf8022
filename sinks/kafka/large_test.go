package kafka_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Not parallel: it counts all memory that is allocated.
func TestDeliverBatch_ARecordAboveMaxBytesIsNotCopied(t *testing.T) {
	const size = 12 << 20
	b := newBench(t, 1, nil)
	s := b.sink(t, nil)
	ds := sinktest.Deliveries(1, 2)
	sinktest.Delivered(t, s, ds[:1])
	long := strings.Repeat("x", size)
	for name, grow := range map[string]func(*processor.Delivery){
		"payload": func(d *processor.Delivery) { d.Payload = []byte(long) },
		"key":     func(d *processor.Delivery) { d.Key = long },
		"headers": func(d *processor.Delivery) { d.Headers = map[string]string{"note": long} },
	} {
		large := sinktest.Deliveries(2, 1)
		grow(&large[0])
		before := allocated()
		n, err := sinktest.Deliver(t, s, large)
		require.Zero(t, n, name)
		require.True(t, processor.IsPermanent(err), name)
		require.ErrorContains(t, err, "bytes, headers included, and max_bytes is 1000000", name)
		require.ErrorContains(t, err, "raise max.message.bytes of the topic, and max_bytes with it", name)
		require.Less(t, allocated()-before, uint64(size+size/2), name) // the payload's copy is the test's
	}
	sinktest.Delivered(t, s, ds[1:])
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
