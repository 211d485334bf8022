package desk

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// transactions are those that the database has seen.
const transactionsSQL = `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`

func TestBoard_MakesOneLookForAllViewers(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, plain)
	insert(t, pool, "ann", 1)
	d := sit(t, config)
	ctx, leave := context.WithCancel(t.Context())
	began := time.Now()
	for range 50 {
		ticks := d.Watch(ctx, "a")
		go func() {
			for range ticks {
				_, _ = d.Fleet(ctx)
				_, _ = d.Process(ctx, "a", Full)
			}
		}()
	}
	looks := map[time.Time]bool{}
	for ticks := d.Watch(ctx, "a"); len(looks) < 4; <-ticks {
		f, err := d.Fleet(ctx)
		require.NoError(t, err)
		looks[f.At] = true
	}
	require.Greater(t, time.Since(began), 2900*time.Millisecond, "at most one look in a second")
	sessions := pgtest.Value[int](t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'ordered-dispatcher'`)
	require.LessOrEqual(t, sessions, lookConns+questionConns)

	leave()
	require.Eventually(t, func() bool { return !d.board.watched() }, patience, 10*time.Millisecond)
	at := func() time.Time {
		d.board.mu.Lock()
		defer d.board.mu.Unlock()
		return d.board.at
	}
	last := at()
	require.Never(t, func() bool { return at().After(last.Add(2 * lookInterval)) }, 4*time.Second, 100*time.Millisecond,
		"nobody watches, so at most the look that was under way comes")
}

// The night is remembered: without viewers the board still looks now and then.
func TestBoard_LooksNowAndThenWithoutViewers(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	d := sitWith(t, Config{Config: config, quiet: 1500 * time.Millisecond})
	looks := map[time.Time]bool{}
	require.Eventually(t, func() bool {
		d.board.mu.Lock()
		defer d.board.mu.Unlock()
		looks[d.board.at] = true
		return len(looks) >= 4
	}, patience, 10*time.Millisecond)
}

// A fleet of a thousand processes takes turns, and what somebody looks at has its turn in every look.
func TestBoard_ALookAtAThousandProcessesStaysCheap(t *testing.T) {
	t.Parallel()
	const n = 1000
	pool, config := fixture(t, many(n))
	insert(t, pool, "ann", 20)
	pgtest.Exec(t, pool, `INSERT INTO od.cursor (process_name) SELECT 'p' || lpad(i::text, 4, '0') FROM generate_series(0, $1) i`, n-1)
	d := sit(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := d.Watch(ctx, "p0500")
	turns := map[string]time.Time{}
	for len(turns) < n/10 { // all of them would take a minute
		<-ticks
		f, err := d.Fleet(ctx)
		require.NoError(t, err)
		require.Len(t, f.Processes, n)
		for _, l := range f.Processes {
			if l.LookedAt == nil || l.Process == "p0500" {
				continue
			}
			require.EqualValues(t, 20, l.Waiting.Records)
			if was, had := turns[l.Process]; had {
				require.Equal(t, was, *l.LookedAt, "nobody has a second turn before all have had one")
			}
			turns[l.Process] = *l.LookedAt
		}
	}
	var took []time.Duration
	before, turn := pgtest.Value[int64](t, pool, transactionsSQL), 0
	for range 3 {
		<-ticks
		began := time.Now()
		f, err := d.Fleet(ctx)
		require.NoError(t, err)
		took = append(took, time.Since(began))
		at := f.Processes[slices.IndexFunc(f.Processes, func(l Line) bool { return l.Process == "p0500" })].LookedAt
		for _, l := range f.Processes {
			require.False(t, l.LookedAt != nil && l.LookedAt.After(*at), "%s has its turn, and not the one that somebody looks at", l.Process)
		}
		d.board.mu.Lock()
		turn = d.board.turn
		d.board.mu.Unlock()
	}
	asked := pgtest.Value[int64](t, pool, transactionsSQL) - before
	t.Logf("the answer took %v; three looks: %d transactions, %d processes have their turn", took, asked, turn)
	require.Less(t, asked, int64(4*(3*(turn+maxWatched)+30)), "statements go with the turns, and not with the fleet")
}

// A decision comes while a look is under way that has read the row already.
func TestBoard_AfterADecisionNoOneSeesWhatWasBefore(t *testing.T) {
	t.Parallel()
	for name, see := range map[string]func(testing.TB, *Desk){
		"fleet": func(t testing.TB, d *Desk) {
			f, err := d.Fleet(t.Context())
			require.NoError(t, err)
			require.Equal(t, "paused", f.Processes[0].State)
		},
		"process": func(t testing.TB, d *Desk) {
			p, err := d.Process(t.Context(), "a", Full)
			require.NoError(t, err)
			require.Equal(t, "paused", p.State)
			require.Equal(t, CausePause, p.Hold.Cause)
			require.Equal(t, "pause", p.History[0].Action)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, d := left(t)
			until(t, d, func(p Process) bool { return p.State == "no worker" })
			d.Watch(t.Context(), "a")
			tx := pgtest.Begin(t, pool, "LOCK TABLE public.bookings")
			require.Eventually(t, func() bool {
				return pgtest.Value[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
			}, patience, time.Millisecond, "a look has read the row, and waits for the table")
			decided(t, d, Order{Verb: Pause, Process: "a"})
			require.NoError(t, tx.Rollback(t.Context()))
			see(t, d)
		})
	}
}

func TestBoard_SaysWhyItCannotLook(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	config.Database = "postgres://nobody:s3cret-canary@127.0.0.1:1/x"
	d := sit(t, config)
	_, err := d.Fleet(t.Context())
	var known *Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, KindAway, known.Kind)
	require.NotContains(t, err.Error(), "s3cret-canary")
	_, err = d.Process(t.Context(), "a", Full)
	require.ErrorAs(t, err, &known)
}

func TestBoard_InAnOutageNobodyWaitsForALookOfTheirOwn(t *testing.T) {
	t.Parallel()
	d, link := linked(t)
	until(t, d, func(p Process) bool { return p.State == "new" })
	back := link.Away()
	var f Fleet
	require.Eventually(t, func() bool {
		var err error
		f, err = d.Fleet(t.Context())
		return err == nil && f.Problem != "" && time.Since(f.At) > fresh
	}, patience, 20*time.Millisecond)
	began := time.Now()
	for range 10 {
		f, err := d.Fleet(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, f.Problem)
		p, err := d.Process(t.Context(), "a", Full)
		require.NoError(t, err)
		require.NotEmpty(t, p.Problem)
		records, err := d.Tail(t.Context(), "a", "", 1)
		require.NoError(t, err)
		require.NotEmpty(t, records.Problem)
	}
	require.Less(t, time.Since(began), 15*lookInterval, "twenty calls do not wait for twenty looks")
	back()
	require.Eventually(t, func() bool {
		now, err := d.Fleet(t.Context())
		return err == nil && now.Problem == "" && now.At.After(f.At)
	}, patience, 20*time.Millisecond)
}

// A page asks several times.
func TestBoard_OfADatabaseThatHangsOnlyTheFirstWaits(t *testing.T) {
	t.Parallel()
	d, link := linked(t)
	until(t, d, func(p Process) bool { return p.State == "new" })
	link.Stall()
	t.Cleanup(link.Resume)
	require.Eventually(t, func() bool {
		d.board.mu.Lock()
		defer d.board.mu.Unlock()
		return time.Since(d.board.at) > fresh
	}, patience, 20*time.Millisecond)
	began := time.Now()
	for range 3 {
		_, err := d.Process(t.Context(), "a", Full)
		require.NoError(t, err)
	}
	require.Less(t, time.Since(began), 2*answerTimeout)
}

// Of a slow database, a look that includes many processes takes long.
func TestBoard_WhatTheLastLookIncludedIsFresh(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBoard(Config{}, nil)
	b.began, b.at = now.Add(-5*time.Second), now
	b.memories["a"] = &memory{process: "a", detail: detail{detailAt: now.Add(-4 * time.Second)}}
	b.memories["b"] = &memory{process: "b", detail: detail{detailAt: now.Add(-6 * time.Second)}}
	require.True(t, b.fresh("a"))
	require.False(t, b.fresh("b"), "it waits for its turn")
}

func TestBoard_RatesAndSparks(t *testing.T) {
	t.Parallel()
	m := &memory{process: "a"}
	start := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	row := rowAt(0, 1, start)
	m.noteRow(row, start)
	require.Nil(t, m.rate(), "one look shows no rate")
	for i := 1; i <= 25; i++ {
		row = rowAt(int64(10*i), 1, start)
		m.noteRow(row, start.Add(time.Duration(i)*time.Second))
	}
	require.InDelta(t, 10, *m.rate(), 0.01)
	spark := m.spark(start.Add(25 * time.Second))
	require.Len(t, spark, SparkLength)
	require.Nil(t, spark[0], "nobody looked then")
	require.InDelta(t, 10, *spark[SparkLength-2], 0.01)
	leapt := rowAt(row.Sequence+10_000, 2, start)
	m.noteRow(leapt, start.Add(26*time.Second))
	require.EqualValues(t, 250, m.delivered, "a seek delivers nothing")
}

// A point of the latency is a delivery: where none was, the plot has a gap and no flat line.
func TestSeries_WithoutADeliveryThereIsNoLatency(t *testing.T) {
	t.Parallel()
	m := &memory{process: "a"}
	created := nine.Add(-2 * time.Minute)
	look := func(second int, sequence int64) {
		row := rowAt(sequence, 1, nine)
		row.Position = cursor.Position("at.int:" + created.Format("2006-01-02T15:04:05.000000Z") + "/1")
		m.noteRow(row, at(second))
		m.noteCause(at(second), time.Minute)
	}
	look(0, 0)
	look(10, 1)
	m.detailAt = at(10)
	look(11, 1)
	look(12, 2)
	look(13, 2)
	look(14, 2)
	var latencies []string
	for _, p := range m.points {
		latencies = append(latencies, text(p.Latency))
	}
	require.Equal(t, []string{"-", "120", "-", "-"}, latencies)
	require.Equal(t, "-", text(m.buckets[0].point.Latency))
	require.Equal(t, "120", text(m.buckets[1].point.Latency), "a bucket has the deliveries of all its looks")
}

func text(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
