package metrics

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// everything is what a process can tell, with data of records where it has any.
func everything(m *Metrics) {
	for _, kind := range []processor.EventKind{
		processor.EventPass, processor.EventLease, processor.EventAttempt, processor.EventAdvance, processor.EventRelease, processor.EventTakeOver,
		processor.EventLeaseLost, processor.EventDatabaseError, processor.EventHalt,
		processor.EventDeadLetter, processor.EventLimited, processor.EventBreaker, "of a later version",
	} {
		for _, class := range append([]cursor.Class{"", "of a later version"}, classes...) {
			for _, process := range []string{"a", "b", "unknown"} {
				m.Observe(processor.Event{Process: process, Kind: kind, Class: class, State: processor.StateIdle, Records: 1, Took: time.Second, Created: time.Now()})
			}
		}
	}
	for _, process := range []string{"a", "b", "unknown"} {
		m.Look(Look{
			Now: time.Now(), Held: table.Held{Lag: time.Second, Cause: table.CauseWriter},
			Row: cursor.Row{Process: process, Position: "CANARY", Holder: "CANARY", State: cursor.Halted, Failure: &cursor.Failure{
				Position: "CANARY", RecordID: "CANARY", Error: "CANARY", Attempts: 1, First: time.Now(), Last: time.Now(), Class: cursor.ClassTransient,
			}},
		})
		m.Lag(process, aged(1, time.Second))
		m.DeadLetters(process, 1)
		m.Late(process, 1)
		m.LeaseBound(process, time.Minute)
	}
	for _, target := range []string{"chat", "mail"} {
		m.Notified(target, Sent)
		m.Notified(target, Failed)
	}
	m.Pruned("public.bookings", errors.New("CANARY"))
}

func aged(records int64, age time.Duration) table.Lag {
	return table.Lag{Records: records, Aged: true, Age: age}
}

func gather(t testing.TB, m *Metrics) []*dto.MetricFamily {
	t.Helper()
	all, err := m.Gather()
	require.NoError(t, err)
	return all
}

// values of each label that a metric of ours may have besides process.
var values = map[string][]string{
	"outcome": {"sent", "failed", "acknowledged", "transient", "unreached", "permanent", "unreadable", "refused", "unknown", "database"},
	"class":   {"transient", "unreached", "permanent", "unreadable", "refused", "unknown", "database"},
	"cause":   {"writer", "transaction", "prepared"},
	"target":  {"chat", "mail"}, // of the configuration
	"table":   {"public.bookings"},
}

func TestMetrics_LabelsComeFromFixedSets(t *testing.T) {
	t.Parallel()
	m := New([]string{"a", "b"})
	everything(m)
	ours := 0
	for _, family := range gather(t, m) {
		if name := family.GetName(); len(name) < len(namespace) || name[:len(namespace)] != namespace {
			continue
		}
		for _, metric := range family.GetMetric() {
			ours++
			for _, label := range metric.GetLabel() {
				if label.GetName() == "process" {
					require.Contains(t, []string{"a", "b"}, label.GetValue(), family.GetName())
					continue
				}
				require.Contains(t, values[label.GetName()], label.GetValue(), family.GetName())
			}
		}
	}
	require.Positive(t, ours)

	var text bytes.Buffer
	for _, family := range gather(t, m) {
		_, err := expfmt.MetricFamilyToText(&text, family)
		require.NoError(t, err)
	}
	require.NotContains(t, text.String(), "CANARY")
	require.NotContains(t, text.String(), "later version")
	problems, err := promlint.New(&text).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A counter that comes into being with its first increment hides it from rate().
func TestMetrics_CountersAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	started, busy := New([]string{"a", "b"}), New([]string{"a", "b"})
	started.Targets("chat", "mail")
	everything(busy)
	count := func(m *Metrics) map[string]int {
		series := map[string]int{}
		for _, family := range gather(t, m) {
			if family.GetType() != dto.MetricType_GAUGE {
				series[family.GetName()] = len(family.GetMetric())
			}
		}
		return series
	}
	require.Equal(t, count(busy), count(started))
}

func TestMetrics_WhatIsNotKnownIsNotThere(t *testing.T) {
	t.Parallel()
	m := New([]string{"a"})
	scrape := func() string {
		answer := httptest.NewRecorder()
		m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	require.NotContains(t, scrape(), "ordered_dispatcher_lag_records{")
	m.Look(Look{Asked: time.UnixMilli(1_700_000_000_500), Now: time.Now(), Row: cursor.Row{Process: "a", State: cursor.Running, Sequence: 7}})
	require.Contains(t, scrape(), `ordered_dispatcher_sequence{process="a"} 7`)
	require.NotContains(t, scrape(), "ordered_dispatcher_lag_records{", "it could not be counted")
	require.Contains(t, scrape(), `ordered_dispatcher_last_look_timestamp_seconds{process="a"} 1.7000000005e+09`, "when it was asked, not when it was told")

	m.Lag("a", table.Lag{Records: 3})
	require.Contains(t, scrape(), `ordered_dispatcher_lag_records{process="a"} 3`)
	require.NotContains(t, scrape(), "ordered_dispatcher_lag_seconds{", "the source has no created_at")

	m.Lag("a", aged(0, time.Second))
	require.Contains(t, scrape(), `ordered_dispatcher_lag_seconds{process="a"} 1`)
	m.NoLag("a")
	require.NotContains(t, scrape(), "ordered_dispatcher_lag_records{", "an old one would be taken for true")
	require.NotContains(t, scrape(), "ordered_dispatcher_lag_seconds{")
}

func TestMetrics_AScrapeSeesWholeLooks(t *testing.T) {
	t.Parallel()
	m := New([]string{"a"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5000 {
			m.Look(Look{Asked: time.Unix(int64(i), 0), Now: time.Now(), Row: cursor.Row{Process: "a", Sequence: int64(i), Epoch: cursor.Epoch(i)}})
		}
	}()
	value := func(all []*dto.MetricFamily, name string) float64 {
		for _, family := range all {
			if family.GetName() == namespace+"_"+name {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	for looking := true; looking; {
		select {
		case <-done:
			looking = false
		default:
		}
		all := gather(t, m)
		sequence := value(all, "sequence")
		require.InDelta(t, sequence, value(all, "epoch"), 0)
		require.InDelta(t, sequence, value(all, "last_look_timestamp_seconds"), 0)
	}
}

func TestHalted_CountsFromTheLastAttempt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	row := cursor.Row{State: cursor.Halted, UpdatedAt: now.Add(-time.Hour)}
	require.Equal(t, time.Hour, halted(Look{Now: now, Row: row}))
	row.Failure = &cursor.Failure{Last: now.Add(-time.Minute), First: now.Add(-2 * time.Hour)}
	require.Equal(t, time.Minute, halted(Look{Now: now, Row: row}))
	row.Failure.Last = now
	require.Positive(t, halted(Look{Now: now, Row: row}), "0 says that it is not")
	row.State = cursor.Running
	require.Zero(t, halted(Look{Now: now, Row: row}))
}

// TestLease_IsCountedFromTheLastCheckpoint: an advance, or a failure that is written down,
// begins a new transaction.
func TestLease_IsCountedFromTheLastCheckpoint(t *testing.T) {
	t.Parallel()
	m := New([]string{"a"})
	open := func() time.Duration {
		since := m.processes["a"].lease.since.Load()
		if since == 0 {
			return 0
		}
		return time.Since(time.Unix(0, since))
	}
	for _, e := range []processor.Event{{Kind: processor.EventAdvance}, {Kind: processor.EventAttempt, Class: cursor.ClassTransient}} {
		e.Process = "a"
		m.Observe(e)
		require.Zero(t, open(), "there is no lease")
		m.Observe(processor.Event{Process: "a", Kind: processor.EventLease})
		m.processes["a"].lease.since.Store(time.Now().Add(-time.Hour).UnixNano())
		m.Observe(processor.Event{Process: "a", Kind: processor.EventAttempt})
		require.Greater(t, open(), 30*time.Minute)
		m.Observe(e)
		require.Less(t, open(), 30*time.Minute)
		m.Observe(processor.Event{Process: "a", Kind: processor.EventRelease})
		require.Zero(t, open())
	}
}
