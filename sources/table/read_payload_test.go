package table

import (
	"bytes"
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestRead_PayloadIsWhatTheServerPrints(t *testing.T) {
	t.Parallel()
	const wild = `{"nul": "\u0000", "b" :  1e400, "a":123456789012345678901234567890, "a": 1.10, "s":"\/é"}`
	for _, c := range []struct{ column, value, want string }{
		{"json", literal(wild), wild},
		{"jsonb", `'{"b": 1.10, "a": 123456789012345678901234567890, "b": 1.20}'`, `{"a": 123456789012345678901234567890, "b": 1.20}`},
		{"text", `E'tab\t "quoted" \\ é'`, "tab\t \"quoted\" \\ é"},
		{"bytea", `'\x00ff5c78'`, "\x00\xff\\x"},
		{"xml", `'<a>é</a>'`, "<a>é</a>"},
		{"numeric", "'12345678901234567890.10'", "12345678901234567890.10"},
		{"timestamptz", "'2026-07-01 12:00:00.5+02'", "2026-07-01 10:00:00.5+00"},
		{"int[]", "'{1,NULL}'", "{1,NULL}"},
		{"text", "''", ""},
		{"bytea", "NULL", ""},
		{"jsonb", "NULL", ""},
		{"jsonb", "'null'", "null"},
	} {
		t.Run(c.column+" "+c.value, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL+fmt.Sprintf(`ALTER TABLE app.bookings ADD body %s; INSERT INTO app.bookings (body) VALUES (%s)`, c.column, c.value))
			exec(t, pool, fmt.Sprintf(`ALTER ROLE CURRENT_USER IN DATABASE %s SET TimeZone = 'Asia/Tokyo'`, pool.Config().ConnConfig.Database))
			s := bookings(t, pgtest.Database(t), Config{Columns: Columns{Payload: "body"}})
			payload := readAll(t, s, "", 10)[0].Payload
			require.Equal(t, c.want, string(payload))
			require.Equal(t, c.value == "NULL", payload == nil)
		})
	}
}

func TestRead_PayloadIsTheWholeRowByDefault(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, bookingsSQL+`
		ALTER TABLE app.bookings ADD doc json, ADD raw bytea, ADD none int;
		INSERT INTO app.bookings VALUES (9007199254740993, '2026-01-02 03:04:05.678901+00', 'a"b', '{"z": "\u0000",  "a":1e400}', '\x00ff');`, Config{})
	const want = `{"id":9007199254740993,"created_at":"2026-01-02T03:04:05.678901+00:00","note":"a\"b","doc":{"z": "\u0000",  "a":1e400},"raw":"\\x00ff","none":null}`
	require.Equal(t, want, string(readAll(t, s, "", 10)[0].Payload))
}

func TestRead_EndsWithTheRecordThatReachesMaxBytes(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (note) SELECT repeat('x', 1000) FROM generate_series(1, 100)`, Config{MaxBytes: 3500, Columns: Columns{Payload: "note"}})
	later(t, pool)
	var after cursor.Position
	var sizes []int
	for len(sizes) < 25 {
		page := read(t, s, after, 500)
		sizes = append(sizes, len(page.Records))
		after = last(page.Records)
	}
	for _, size := range sizes {
		require.Equal(t, 4, size, "three records do not reach the bound, four do")
	}
	require.Empty(t, read(t, s, after, 500).Records)
}

// After large records come small ones, and pages grow again.
func TestRead_PagesGrowAgainWhenRecordsAreSmall(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`
		INSERT INTO app.bookings (note) SELECT repeat('x', 5000) FROM generate_series(1, 5);
		INSERT INTO app.bookings (note) SELECT 'x' FROM generate_series(1, 1000);`, Config{MaxBytes: 4000, Columns: Columns{Payload: "note"}})
	later(t, pool)
	var after cursor.Position
	reads := 0
	for got := 0; got < 1005; reads++ {
		page := read(t, s, after, 500)
		got, after = got+len(page.Records), last(page.Records)
	}
	require.Less(t, reads, 5+12)
}

// inChild runs the calling test alone in a process of its own, where memory can
// be measured, and reports whether this is that process.
func inChild(t *testing.T) bool {
	t.Helper()
	const variable = "TABLE_TEST_CHILD"
	if os.Getenv(variable) == t.Name() {
		return true
	}
	child := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"="+t.Name(), "DATABASE_URL="+pgtest.URL(t))
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", bytes.TrimSpace(out))
	return false
}

// peak is the memory that this process has ever had.
func peak() int {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.Sys)
}

const mebibyte = 1 << 20

func TestRead_PayloadOf100MBInBoundedMemory(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	_, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (note) VALUES (repeat('x', 100000000)), ('small')`, Config{MaxRecordBytes: 200 << 20, Columns: Columns{Payload: "note"}})
	records := readAll(t, s, "", 500)
	require.Len(t, records[0].Payload, 100_000_000)
	require.Equal(t, "small", string(records[1].Payload))
	t.Logf("peak %d MiB", peak()/mebibyte)
	require.Less(t, peak(), 300*mebibyte)
}

func TestRead_FortyPayloadsOf20MBInBoundedMemory(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	const n, size = 40, 20_000_000
	pool, s := sourceOn(t, bookingsSQL+fmt.Sprintf(`INSERT INTO app.bookings (note) SELECT repeat('x', %d) FROM generate_series(1, %d)`, size, n), Config{Columns: Columns{Payload: "note"}})
	later(t, pool)
	var after cursor.Position
	for i := range n {
		page := read(t, s, after, 500)
		require.Len(t, page.Records, 1, "MaxBytes and one record")
		require.Equal(t, fmt.Sprint(i+1), page.Records[0].ID)
		require.Len(t, page.Records[0].Payload, size)
		after = last(page.Records)
	}
	require.Empty(t, read(t, s, after, 500).Records)
	await(t, "the connection that was cut off is closed", func() bool { return pool.Stat().AcquiredConns() == 0 })
	require.LessOrEqual(t, pool.Stat().NewConnsCount(), int64(3), "only a read that was cut off costs its connection")
	t.Logf("peak %d MiB", peak()/mebibyte)
	require.Less(t, peak(), 256*mebibyte)
}

// A record that fills a page is delivered, however large.
func TestRead_RecordLargerThanMaxBytesIsDelivered(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (note) VALUES (repeat('x', 3000000)), ('a')`, Config{MaxBytes: 1, Columns: Columns{Payload: "note"}})
	records := readAll(t, s, "", 10)
	require.Equal(t, []string{"1", "2"}, ids(records))
	require.Equal(t, strings.Repeat("x", 3000000), string(records[0].Payload))
}

// A condition that stumbles over a value quotes it, and errors go to the log.
func TestRead_NoErrorQuotesAValue(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`INSERT INTO app.bookings (note) VALUES (E'CANARY "quoted"\nlast')`)
	later(t, pool)
	s := bookings(t, pool, Config{Where: "note::int > 0"})
	_, err := s.Read(t.Context(), "", 10)
	require.EqualError(t, err, `read app.bookings: invalid input syntax for type integer: "…" (SQLSTATE 22P02)`)
	require.True(t, processor.IsPermanent(err))
	_, err = s.Lag(t.Context(), "")
	require.ErrorContains(t, err, "22P02")
	require.NotContains(t, err.Error(), "CANARY")
}
