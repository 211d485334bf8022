package desk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

var nine = time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)

func rowAt(sequence int64, epoch cursor.Epoch, at time.Time) cursor.Row {
	return cursor.Row{Process: "a", Sequence: sequence, Epoch: epoch, State: cursor.Running, UpdatedAt: at}
}

func at(second int) time.Time { return nine.Add(time.Duration(second) * time.Second) }

// seconds are the shares by cause.
func seconds(shares []Share) map[Cause]float64 {
	all := map[Cause]float64{}
	for _, s := range shares {
		all[s.Cause] = s.Seconds
	}
	return all
}

func TestSplit_TheAgeIsDividedByWhatKeptTheRecordWaiting(t *testing.T) {
	t.Parallel()
	seen := covered{{at(0), at(100)}}
	m := &memory{spans: []Span{
		{Cause: CauseFence, From: at(-50), To: at(10)},
		{Cause: CauseReceiver, From: at(20), To: at(50)},
		{Cause: CausePause, From: at(90), To: at(99), Open: true},
	}}
	require.Equal(t, map[Cause]float64{CauseFence: 60, CauseReceiver: 30, CausePause: 10, CauseBacklog: 50}, seconds(m.split(150, seen, at(100))))
	require.Equal(t, map[Cause]float64{CausePause: 5}, seconds(m.split(5, seen, at(100))))
	require.Equal(t, map[Cause]float64{CauseFence: 60, CauseReceiver: 30, CausePause: 10, CauseBacklog: 50, CauseUnknown: 100}, seconds(m.split(250, seen, at(100))), "nobody looked before")
	require.Equal(t, map[Cause]float64{CauseUnknown: 30}, seconds((&memory{}).split(30, covered{}, at(100))))
	for _, age := range []float64{0, 0.5, 7, 80, 149, 1000} {
		sum := 0.0
		for _, s := range m.split(age, seen, at(100)) {
			sum += s.Seconds
		}
		require.InDelta(t, age, sum, 0.002, "the shares are the whole age")
	}
}

func TestSpans_GoOnOverShortGapsAndBeginWhereTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	m := &memory{process: "a"}
	halted := rowAt(5, 1, at(0))
	halted.State, halted.Failure = cursor.Halted, &cursor.Failure{RecordID: "6", Attempts: 1, First: at(-300), Last: at(-300)}
	m.noteRow(halted, at(0))
	m.noteCause(at(0), time.Minute)
	m.noteRow(halted, at(60))
	m.noteCause(at(60), time.Minute)
	require.Len(t, m.spans, 1)
	require.Equal(t, at(-300), m.spans[0].From, "the row knows since when it fails")
	require.Equal(t, at(60), m.spans[0].To)
	require.True(t, m.spans[0].Open)

	m.noteRow(rowAt(6, 2, at(61)), at(61))
	m.noteCause(at(61), time.Minute)
	require.False(t, m.spans[0].Open, "a retry has ended it")
	for i := range 3 * maxSpans {
		now := at(1000 * (i + 1))
		paused := rowAt(6, 2, now)
		paused.State = cursor.Paused
		m.noteRow(paused, now)
		m.noteCause(now, time.Minute)
		m.noteRow(rowAt(6, 3, now), now.Add(time.Second))
		m.noteCause(now.Add(time.Second), time.Minute)
	}
	require.LessOrEqual(t, len(m.spans), maxSpans+1)
	require.LessOrEqual(t, len(m.buckets), maxBuckets)
}

// A quiet board looks once in a minute. It may miss what was between two halts, and still they are two.
func TestSpans_TwoHaltsAreTwo(t *testing.T) {
	t.Parallel()
	m := &memory{process: "a"}
	halt := func(second int, record string) {
		row := rowAt(5, 1, at(second))
		row.State, row.Failure = cursor.Halted, &cursor.Failure{Position: cursor.Position(record), RecordID: record, Attempts: 1, First: at(second - 10), Last: at(second - 10)}
		m.noteRow(row, at(second))
		m.noteCause(at(second), time.Minute)
	}
	halt(0, "23")
	halt(60, "26")
	require.Len(t, m.spans, 2, "the records are two")
	require.Equal(t, at(-10), m.spans[0].From)
	require.Equal(t, at(0), m.spans[0].To)
	require.False(t, m.spans[0].Open)
	require.Equal(t, at(50), m.spans[1].From)
	halt(61, "26")
	require.Len(t, m.spans, 2)

	m.noteRow(rowAt(5, 2, at(62)), at(62)) // a retry
	m.noteCause(at(62), time.Minute)
	halt(64, "26")
	require.Len(t, m.spans, 2, "so short a time is not worth a line")
	m.noteRow(rowAt(5, 3, at(65)), at(65))
	m.noteCause(at(65), time.Minute)
	halt(80, "26")
	require.Len(t, m.spans, 3, "a look has seen that it ran")
}

func TestCovered_IsWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	var c covered
	for _, second := range []int{0, 1, 60, 300, 301} {
		c.note(at(second), time.Minute)
	}
	require.Equal(t, covered{{at(0), at(60)}, {at(300), at(301)}}, c)
	require.Equal(t, 30*time.Second+time.Second, c.within(at(30), at(1000)))
}
