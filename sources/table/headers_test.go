package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headersOf is an object with so many names.
func headersOf(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"%x": "a:\"b:"`, i))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func TestParseHeaders_TakesAThousandNames(t *testing.T) {
	t.Parallel()
	headers, err := parseHeaders([]byte(headersOf(1000)))
	require.NoError(t, err)
	require.Len(t, headers, 1000)
	require.Equal(t, `a:"b:`, headers["0"])
	headers, err = parseHeaders([]byte(`{"o": {` + strings.Repeat(`"x": 1, `, 2000) + `"y": [{"z": 2}]}, "\\": ":"}`))
	require.NoError(t, err, "names within a value are none of the headers")
	require.Len(t, headers, 2)
	_, err = parseHeaders([]byte(headersOf(1001)))
	require.EqualError(t, err, "its headers have more than 1000 names: put the rest into the payload")
}

// Not parallel: it counts what is allocated.
func TestParseHeaders_ManyNamesTakeNoMemory(t *testing.T) {
	text := []byte(headersOf(100_000))
	bytes := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = parseHeaders(text)
		}
	}).AllocedBytesPerOp()
	require.Less(t, bytes, int64(10_000))
}

func TestRead_ARecordOfTooManyHeadersFailsInItsPlace(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`ALTER TABLE app.bookings ADD headers json;
		INSERT INTO app.bookings (headers) SELECT ('{' || string_agg('"' || i || '": ""', ',') || '}')::json FROM generate_series(1, 1001) i;
		INSERT INTO app.bookings (headers) VALUES ('{"x": "y"}');`)
	records := readSome(t, bookings(t, pool, Config{Columns: Columns{Headers: "headers"}}), "", 2)
	require.Len(t, records, 2)
	require.ErrorContains(t, records[0].Fault, "more than 1000 names")
	require.Empty(t, records[0].Headers)
	require.NoError(t, records[1].Fault)
}
