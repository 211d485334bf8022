package retention

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const lines = "0123456789abcdef"

// A name that was written before stays the same. So a pass after a crash finds the file of the one before.
func TestFileName_HasTheWholePositionsIfTheyFit(t *testing.T) {
	t.Parallel()
	first, last := cursor.Position("at.int:2026-01-01T00:01:00.000000Z/1"), cursor.Position("at.int:2026-01-01T00:04:00.000000Z/00000000000000000004")
	require.Equal(t, "public.bookings,at.int%3A2026-01-01T00%3A01%3A00.000000Z%2F1,at.int%3A2026-01-01T00%3A04%3A00.000000Z%2F00000000000000000004,"+lines+".jsonl.gz",
		fileName("public.bookings", first, last, lines))
	long := cursor.Position("text:" + strings.Repeat("é", 1000))
	require.Equal(t, "public.bookings,text%3A"+strings.Repeat("%C3%A9", 13)+"%C3=7ba57b7f56dfe1a2,x,"+lines+".jsonl.gz", fileName("public.bookings", long, "x", lines))
}

// PostgreSQL takes any text as an id, and 63 bytes of any letters as the name of a schema and of a table.
func TestFileName_IsTheNameOfAFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"", "a", "é", ",", "/", "%", "=", "~"}).Draw(t, "letter") + strings.Repeat(rapid.SampledFrom([]string{"a", "é", "/"}).Draw(t, "more"), rapid.IntRange(0, 400).Draw(t, "n"))
		})
		table, first, last, other := text.Draw(t, "table"), cursor.Position(text.Draw(t, "first")), cursor.Position(text.Draw(t, "last")), cursor.Position(text.Draw(t, "other"))
		name := fileName(table, first, last, lines)
		require.LessOrEqual(t, len(name), 255)
		require.NotContains(t, name, "/")
		require.Len(t, strings.Split(name, ","), 4)
		require.Equal(t, lines, digestOf(name))
		_, err := url.QueryUnescape(name)
		require.NoError(t, err, "an escape is whole")
		require.True(t, strings.HasPrefix(fileName(table, first, other, lines), beginning(table, first)), "whatever the last row is")
		require.Equal(t, first == other, beginning(table, first) == beginning(table, other))
	})
}
