// Package sourcetest checks that an implementation of processor.Source keeps the promises of the interface: order, no
// gap, no repetition, positions that sort as records do, and a late record that is not skipped.
//
//	func TestSource(t *testing.T) {
//		sourcetest.Run(t, func(t testing.TB) sourcetest.Fixture { … })
//	}
package sourcetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Fixture is a source that has no record yet, and functions that add some.
type Fixture struct {
	Source processor.Source
	// Add makes n records and returns their ids, in the order of the source.
	Add func(n int) []string
	// Begin starts a transaction, or its like, that makes one more record. The record sorts before those that are
	// added from now on. It appears when finish is called.
	Begin func() (finish func() (id string))
}

// patience bounds the wait for something that should come at once.
const patience = 30 * time.Second

// Run checks each promise against a fixture of its own.
func Run(t *testing.T, open func(t testing.TB) Fixture) {
	for name, promise := range map[string]func(*testing.T, Fixture){
		"a source without records ends at once":       endsAtOnce,
		"records come in order, in pages of any size": ordered,
		"a position is worth the same at any time":    reread,
		"a source that was read to its end goes on":   goesOn,
		"a late record holds back and is not skipped": late,
		"the end is after all records":                end,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(t, open(t))
		})
	}
}

// all reads from a position to the end, in pages of limit. It checks each page against the promises that any page
// makes.
func all(t *testing.T, s processor.Source, after cursor.Position, limit int) []processor.Record {
	t.Helper()
	var records []processor.Record
	seen := map[string]bool{}
	for deadline := time.Now().Add(patience); ; {
		require.True(t, time.Now().Before(deadline), "the source does not come to its end")
		page, err := s.Read(t.Context(), after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Records), limit)
		for _, r := range page.Records {
			require.Less(t, after, r.Position, "positions sort as records do")
			require.False(t, seen[r.ID], "record %s comes once", r.ID)
			seen[r.ID] = true
			after = r.Position
		}
		records = append(records, page.Records...)
		switch {
		case len(page.Records) > 0:
		case page.Waiting:
			<-time.After(min(max(page.Due, time.Millisecond), 10*time.Millisecond))
		default:
			return records
		}
	}
}

func ids(records []processor.Record) []string {
	ids := make([]string, 0, len(records))
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

func endsAtOnce(t *testing.T, f Fixture) {
	page, err := f.Source.Read(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, page.Records)
	require.False(t, page.Waiting)
}

func ordered(t *testing.T, f Fixture) {
	want := f.Add(25)
	for _, limit := range []int{1, 2, 24, 25, 26, 1000} {
		require.Equal(t, want, ids(all(t, f.Source, "", limit)), "limit %d", limit)
	}
}

func reread(t *testing.T, f Fixture) {
	f.Add(12)
	records := all(t, f.Source, "", 5)
	for i, r := range records {
		require.Equal(t, records[i+1:], append([]processor.Record{}, all(t, f.Source, r.Position, 7)...))
	}
}

func goesOn(t *testing.T, f Fixture) {
	var want []string
	var after cursor.Position
	for n := range 5 {
		added := f.Add(n)
		want = append(want, added...)
		records := all(t, f.Source, after, 3)
		require.Equal(t, added, ids(records))
		if len(records) > 0 {
			after = records[len(records)-1].Position
		}
	}
	require.Equal(t, want, ids(all(t, f.Source, "", 3)))
}

func late(t *testing.T, f Fixture) {
	before := all(t, f.Source, "", 10)
	require.Empty(t, before)
	first := f.Add(1)
	finish := f.Begin()
	behind := f.Add(3)
	var after cursor.Position
	var got []string
	for deadline := time.Now().Add(50 * time.Millisecond); time.Now().Before(deadline); {
		page, err := f.Source.Read(t.Context(), after, 10)
		require.NoError(t, err)
		got = append(got, ids(page.Records)...)
		if n := len(page.Records); n > 0 {
			after = page.Records[n-1].Position
		}
		require.Subset(t, first, got, "records after the late record wait for it")
	}
	id := finish()
	got = append(got, ids(all(t, f.Source, after, 10))...)
	require.Equal(t, append(append(first, id), behind...), got)
}

// end checks a source that is a processor.Ender.
func end(t *testing.T, f Fixture) {
	ender, ok := f.Source.(processor.Ender)
	if !ok {
		return
	}
	f.Add(3)
	end, err := ender.End(t.Context())
	require.NoError(t, err)
	require.Equal(t, f.Add(2), ids(all(t, f.Source, end, 10)))
}
