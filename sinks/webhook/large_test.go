package webhook

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Not parallel: it counts all memory that is allocated.
func TestDeliver_WhatIsTooLongForHeadersFailsForGoodBeforeItIsEscaped(t *testing.T) {
	const size = 8 << 20
	url, requests := record(t)
	long := strings.Repeat("\x01", size)
	for name, grow := range map[string]func(*processor.Delivery){
		"key":  func(d *processor.Delivery) { d.Key = long },
		"type": func(d *processor.Delivery) { d.Type = long },
		"id":   func(d *processor.Delivery) { d.ID = long },
	} {
		for _, c := range []Config{{URL: url}, {URL: url + "/{{.Key}}"}, {URL: url, Format: CloudEvents}, {URL: url, Format: CloudEventsStructured}} {
			d := delivery()
			grow(&d)
			before := allocated()
			err := newSink(t, c).Deliver(t.Context(), d)
			require.ErrorContains(t, err, "bytes, and headers may have 1048576: make the row smaller", name)
			require.True(t, processor.IsPermanent(err), name)
			require.Less(t, allocated()-before, uint64(size), name)
		}
	}
	require.Empty(t, requests())
}

// Not parallel, as above.
func TestStructured_CopiesALargePayloadOnce(t *testing.T) {
	const size = 24 << 20
	for _, payload := range []string{strings.Repeat("\x01", size), `"` + strings.Repeat("x", size) + `"`} {
		d := delivery()
		d.Payload = []byte(payload)
		before := allocated()
		body := structured(d)
		require.Less(t, allocated()-before, uint64(len(body)+len(body)/4))
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
