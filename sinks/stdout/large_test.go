package stdout

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Not parallel: it counts all memory that is allocated. An escape takes six bytes for
// one: a record within max_record_bytes would make a line of 384 MiB.
func TestDeliver_ALineThatEscapesMakeTooLongFailsForGoodBeforeItIsMade(t *testing.T) {
	const size = 24 << 20
	s := newSink(t, io.Discard)
	long := strings.Repeat("\x01", size)
	for name, d := range map[string]processor.Delivery{
		"payload": {Record: processor.Record{Payload: []byte(long)}},
		"key":     {Record: processor.Record{Key: long}},
		"headers": {Record: processor.Record{Headers: map[string]string{"note": long}}},
	} {
		before := allocated()
		err := s.Deliver(t.Context(), d)
		require.ErrorContains(t, err, "its line would have 150995", name)
		require.ErrorContains(t, err, "the limit is 134217728: make the row smaller", name)
		require.True(t, processor.IsPermanent(err), name)
		require.Less(t, allocated()-before, uint64(size), name)
	}
}

// Where max_record_bytes was raised, a large record that needs few escapes is written.
func TestDeliver_ALargeRecordsLineMayHaveTwiceItsSize(t *testing.T) {
	s := newSink(t, io.Discard)
	require.NoError(t, s.Deliver(t.Context(), delivery(strings.Repeat("xxxxxxx\n", 9<<20))))
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
