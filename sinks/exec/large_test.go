package exec_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Not parallel: it counts all memory that is allocated. An escape takes six bytes for
// one, so what is bounded is the line.
func TestDeliverBatch_ALineAboveMaxBytesFailsForGoodBeforeItIsMade(t *testing.T) {
	const size = 4 << 20
	long := strings.Repeat("\x01", size)
	b := newBench(t)
	s := b.sink(t, "journal", func(c *exec.Config) { c.MaxBytes = 5 << 20 })
	for name, grow := range map[string]func(*processor.Delivery){
		"payload": func(d *processor.Delivery) { d.Payload = []byte(long) },
		"key":     func(d *processor.Delivery) { d.Key = long },
		"type":    func(d *processor.Delivery) { d.Type = long },
		"id":      func(d *processor.Delivery) { d.ID = long },
		"headers": func(d *processor.Delivery) { d.Headers = map[string]string{"note": long} },
	} {
		ds := sinktest.Deliveries(1, 1)
		before := allocated()
		grow(&ds[0])
		n, err := s.DeliverBatch(t.Context(), ds)
		require.Zero(t, n, name)
		require.True(t, processor.IsPermanent(err), name)
		require.Regexp(t, `its line would have (2516|5033)\d{4} bytes.* the limit is 5242880: raise max_bytes`, err.Error()[max(0, len(err.Error())-300):], name)
		if name != "id" { // which is quoted
			require.Less(t, allocated()-before, uint64(2*size), name)
		}
	}
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1)) // the child is whole
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
