package desk

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// receiver answers with a status, and a text that quotes nothing.
func receiver(t testing.TB, status *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "no room 42 today")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestDesk_FromNewToDeliveredToUnlisted(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, plain)
	d := sit(t, config)
	p := until(t, d, func(p Process) bool { return p.State == "new" })
	require.Equal(t, rankNew, p.Need.Rank)
	insert(t, pool, "ann", 3)
	stop := work(t, config)
	p = until(t, d, func(p Process) bool { return delivered(3)(p) && p.Head == nil })
	require.Equal(t, "public.bookings", p.Table)
	require.Equal(t, "stdout", p.Sink)
	var tail Tail
	require.Eventually(t, func() bool { // the records come a moment after the row
		var err error
		tail, err = d.Tail(t.Context(), "a", "", 10)
		return err == nil && len(tail.Records) == 3
	}, patience, 20*time.Millisecond)
	require.True(t, tail.Records[0].Masked)
	insert(t, pool, "bob", 2)
	until(t, d, delivered(5))
	require.Eventually(t, func() bool {
		next, err := d.Tail(t.Context(), "a", tail.Next, 10)
		return err == nil && len(next.Records) == 2 && next.Records[0].Key == "bob"
	}, patience, 20*time.Millisecond)

	stop()
	insert(t, pool, "cat", 1)
	p = until(t, d, func(p Process) bool { return p.State == "no worker" && waits(1)(p) })
	require.Equal(t, CauseNobody, p.Hold.Cause)
	require.Equal(t, rankNobody, p.Need.Rank)
	pgtest.Exec(t, pool, `INSERT INTO od.cursor (process_name) VALUES ('of another file')`)
	require.Eventually(t, func() bool {
		f, err := d.Fleet(t.Context())
		return err == nil && len(f.Processes) == 2 && f.Processes[0].Process == "a" && !f.Processes[1].Configured
	}, patience, 20*time.Millisecond)
	_, err := d.Process(t.Context(), "b", Full)
	var unknown *Error
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, KindUnknown, unknown.Kind)
}

func TestDesk_AHeldFenceNamesItsHolderAndRemembersIt(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, plain)
	work(t, config)
	d := sit(t, config)
	until(t, d, func(p Process) bool { return p.State == "running" })
	holder := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "nightly import"})
	tx := pgtest.Begin(t, holder, "INSERT INTO public.bookings DEFAULT VALUES")
	insert(t, pool, "ann", 1)
	p := until(t, d, because(CauseFence))
	require.Equal(t, "nightly import", p.HeldBy[0].Application)
	require.EqualValues(t, tx.Conn().PgConn().PID(), p.HeldBy[0].PID)
	require.Contains(t, p.HeldBy[0].SQL, "pg_terminate_backend")
	require.True(t, p.Held[0].Open)
	require.Contains(t, p.Held[0].Who, "nightly import")
	require.Equal(t, CauseFence, p.Waiting.Split[0].Cause)
	require.NoError(t, tx.Rollback(t.Context()))
	p = until(t, d, delivered(1))
	p = until(t, d, func(p Process) bool { return !p.Held[0].Open })
	require.Contains(t, p.Held[0].Who, "nightly import", "it is remembered")
}

func TestDesk_APoisonRecordIsShownRetriedAndSkipped(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusUnprocessableEntity)
	pool, config := fixture(t, toWebhook(receiver(t, &status), ""))
	insert(t, pool, "ann", 2)
	work(t, config)
	d := sit(t, config)
	p := until(t, d, because(CauseHalt))
	require.Equal(t, "halted", p.State)
	require.Equal(t, rankHalted, p.Need.Rank)
	require.Equal(t, "1", p.Failure.RecordID)
	require.Contains(t, p.Failure.Error, "422")
	require.Equal(t, "1", p.Head.ID)
	require.Equal(t, []Verb{Retry, Skip, Seek}, p.Verbs)

	skip := Order{Verb: Skip, Process: "a"}
	preview, err := d.Preview(t.Context(), skip)
	require.NoError(t, err)
	require.Contains(t, preview.Text, "would be passed over: it would not be sent again; the process would run again")
	require.Equal(t, "1", preview.Records[0].ID)
	require.Equal(t, "ann", preview.Records[0].Key)
	require.True(t, preview.NeedsReason)
	_, err = d.Decide(t.Context(), skip, Approval{Expect: preview.Expect, Actor: "alice"})
	require.ErrorContains(t, err, "a reason is missing")
	status.Store(http.StatusOK)
	decided(t, d, Order{Verb: Retry, Process: "a"})
	until(t, d, delivered(2))
	_, err = d.Decide(t.Context(), skip, Approval{Reason: "too late", Expect: preview.Expect, Actor: "alice"})
	var moved *Error
	require.ErrorAs(t, err, &moved)
	require.Equal(t, KindMoved, moved.Kind, err)
	audit, err := d.Audit(t.Context(), AuditAsk{Actor: "alice"}, Masked)
	require.NoError(t, err)
	require.Len(t, audit.Events, 1)
	require.Equal(t, "retry", audit.Events[0].Action)
	require.Equal(t, "a test", audit.Events[0].Reason)
	require.Contains(t, audit.Actors, "alice")
}

func TestDesk_DeadLettersAreGroupedReplayedAndDiscardedInOrder(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusUnprocessableEntity)
	pool, config := fixture(t, toWebhook(receiver(t, &status), ", on_poison: dead_letter"))
	insert(t, pool, "ann", 4)
	work(t, config)
	d := sit(t, config)
	until(t, d, delivered(4))
	list, err := d.Letters(t.Context(), LettersAsk{})
	require.NoError(t, err)
	require.Len(t, list.Letters, 4)
	require.Len(t, list.Groups, 1)
	require.Contains(t, list.Groups[0].Pattern, "answered 422")
	require.Equal(t, []IDText{1, 2, 3, 4}, list.Groups[0].IDs)
	p := until(t, d, func(p Process) bool { return p.DeadLetters != nil && *p.DeadLetters == 4 })
	require.Equal(t, rankLetters, p.Need.Rank)

	replay := Order{Verb: Replay, Process: "a", Letters: []IDText{2, 1}}
	preview, err := d.Preview(t.Context(), replay)
	require.NoError(t, err)
	require.Equal(t, "1", preview.Records[0].ID, "in the order of their positions")
	stopped, err := d.Decide(t.Context(), replay, Approval{Expect: preview.Expect, Actor: "alice"})
	require.Error(t, err, "the first one fails again")
	require.Zero(t, stopped.Done)
	status.Store(http.StatusOK)
	done := decided(t, d, replay)
	require.Equal(t, 2, done.Done, done.Failed)
	_, err = d.Decide(t.Context(), replay, Approval{Expect: preview.Expect, Actor: "alice"})
	require.Error(t, err, "they are resolved")
	all := Order{Verb: Discard, Process: "a", AllLetters: true}
	preview, err = d.Preview(t.Context(), all)
	require.NoError(t, err)
	require.EqualValues(t, 2, preview.Total)
	decided(t, d, Order{Verb: Discard, Process: "a", Letters: []IDText{3}})
	_, err = d.Decide(t.Context(), all, Approval{Reason: "all of them", Expect: preview.Expect, Actor: "alice"})
	var moved *Error
	require.ErrorAs(t, err, &moved)
	require.Equal(t, KindMoved, moved.Kind, "one of them is resolved by now")
	require.Equal(t, 1, decided(t, d, all).Done)
	letter, err := d.Letter(t.Context(), 3, Full)
	require.NoError(t, err)
	require.Equal(t, "discarded", letter.Resolution)
	require.Equal(t, "alice", letter.ResolvedBy)
	require.JSONEq(t, "{}", letter.Record.Payload)
}

// standings are those of the records that a search finds, by id.
func standings(t testing.TB, d *Desk, s Search) map[string]daemon.Standing {
	t.Helper()
	found, err := d.Find(t.Context(), s, Masked)
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	all := map[string]daemon.Standing{}
	for _, s := range found.Records {
		all[s.Record.ID] = s.Standing
		require.NotEmpty(t, s.Text)
		require.Empty(t, s.Record.Payload)
	}
	return all
}

func TestFind_ByKeyIdAndDedupKey(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusOK)
	pool, config := fixture(t, toWebhook(receiver(t, &status), ", on_poison: dead_letter"))
	insert(t, pool, "ann", 1)
	d := sit(t, config)
	require.Equal(t, map[string]daemon.Standing{"1": daemon.StandingNew}, standings(t, d, Search{By: ByKey, Text: "ann"}))
	stop := work(t, config)
	until(t, d, delivered(1))
	status.Store(http.StatusUnprocessableEntity)
	insert(t, pool, "ann", 1)
	until(t, d, delivered(2))
	decided(t, d, Order{Verb: Pause, Process: "a"})
	stop()
	insert(t, pool, "ann", 4)
	until(t, d, waits(4))
	decided(t, d, Order{Verb: Seek, Process: "a", To: &Target{Kind: ToID, Value: "5"}})
	want := map[string]daemon.Standing{"1": daemon.StandingDelivered, "2": daemon.StandingLetter, "3": daemon.StandingSkipped, "4": daemon.StandingSkipped, "5": daemon.StandingNext, "6": daemon.StandingWaiting}
	require.Equal(t, want, standings(t, d, Search{By: ByKey, Text: "ann"}))
	require.Empty(t, standings(t, d, Search{By: ByKey, Text: "nobody"}))
	require.Equal(t, map[string]daemon.Standing{"6": daemon.StandingWaiting}, standings(t, d, Search{By: ByID, Text: "6", Process: "a"}))
	require.Empty(t, standings(t, d, Search{By: ByID, Text: "not a number"}))
	found, err := d.Find(t.Context(), Search{By: ByID, Text: "4"}, Full)
	require.NoError(t, err)
	key := found.Records[0].Record.DedupKey
	require.Regexp(t, `^public\.bookings/4/\d+$`, key)
	require.JSONEq(t, "{}", found.Records[0].Record.Payload)
	require.Equal(t, map[string]daemon.Standing{"4": daemon.StandingSkipped}, standings(t, d, Search{By: ByDedup, Text: key}))
	require.Empty(t, standings(t, d, Search{By: ByDedup, Text: key + "1"}))
	pgtest.Exec(t, pool, "DELETE FROM public.bookings WHERE id = 2")
	found, err = d.Find(t.Context(), Search{By: ByID, Text: "2"}, Masked)
	require.NoError(t, err)
	require.Len(t, found.Records, 1)
	require.True(t, found.Records[0].Gone)
	require.Equal(t, daemon.StandingLetter, found.Records[0].Standing)
	require.Contains(t, found.Records[0].Text, "its row is gone")
	decided(t, d, Order{Verb: Seek, Process: "a", To: &Target{Kind: ToStart}})
	require.Equal(t, map[string]daemon.Standing{"4": daemon.StandingWaiting}, standings(t, d, Search{By: ByDedup, Text: key}))
}

func TestFind_WhatWasNotDelivered(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusOK)
	pool, config := fixture(t, toWebhook(receiver(t, &status), ", on_poison: dead_letter"))
	config.Processes[0].Start = processor.End
	insert(t, pool, "ann", 2)
	d := sit(t, config)
	stop := work(t, config)
	until(t, d, func(p Process) bool { return p.State == "running" })
	insert(t, pool, "ann", 1)
	until(t, d, delivered(1))
	status.Store(http.StatusUnprocessableEntity)
	insert(t, pool, "ann", 1)
	until(t, d, delivered(2))
	stop()
	require.Equal(t, map[string]daemon.Standing{"1": daemon.StandingBefore, "2": daemon.StandingBefore, "3": daemon.StandingDelivered, "4": daemon.StandingLetter}, standings(t, d, Search{By: ByKey, Text: "ann"}))
	var tail Tail
	require.Eventually(t, func() bool {
		var err error
		tail, err = d.Tail(t.Context(), "a", "", 10)
		return err == nil && len(tail.Records) > 0 && tail.Next == until(t, d, delivered(2)).Position
	}, patience, 20*time.Millisecond)
	require.Len(t, tail.Records, 1, "neither those before the start nor the one that was put aside")
	require.Equal(t, "3", tail.Records[0].ID)

	pgtest.Exec(t, pool, "DELETE FROM od.dead_letter")
	require.Equal(t, map[string]daemon.Standing{"4": daemon.StandingPutAside}, standings(t, d, Search{By: ByID, Text: "4"}))
}

func TestDecide_AnOrderThatMakesNoSense(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	d := sit(t, config)
	for _, o := range []Order{
		{}, {Verb: "drop", Process: "a"}, {Verb: Pause}, {Verb: Seek, Process: "a"}, {Verb: Seek, Process: "a", To: &Target{Kind: ToTime, Value: "now"}},
		{Verb: Pause, Process: "a", To: &Target{Kind: ToStart}}, {Verb: Pause, Process: "a", AllLetters: true}, {Verb: Replay, Process: "a"},
		{Verb: Replay, Process: "a", AllLetters: true, Letters: []IDText{1}}, {Verb: Retry, Process: "b"},
	} {
		_, err := d.Preview(t.Context(), o)
		var known *Error
		require.ErrorAs(t, err, &known, o)
		require.Contains(t, []Kind{KindUsage, KindUnknown}, known.Kind, err)
	}
	_, err := d.Decide(t.Context(), Order{Verb: Pause, Process: "a"}, Approval{Actor: "alice"})
	require.ErrorContains(t, err, "make a preview first")
	p, err := d.Preview(t.Context(), Order{Verb: Pause, Process: "a"})
	require.NoError(t, err)
	_, err = d.Decide(t.Context(), Order{Verb: Pause, Process: "a"}, Approval{Expect: p.Expect})
	require.ErrorContains(t, err, "who decides")
	require.True(t, decided(t, d, Order{Verb: Pause, Process: "a"}).Changed, "before its first run")
	_, err = d.Decide(t.Context(), Order{Verb: Pause, Process: "a"}, Approval{Expect: p.Expect, Actor: "alice"})
	var moved *Error
	require.ErrorAs(t, err, &moved)
	require.Equal(t, KindMoved, moved.Kind)
}

func TestDecide_WithoutThePreviewOfThisVerbNothingIsDone(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, plain)
	d := sit(t, config)
	insert(t, pool, "ann", 1)
	stop := work(t, config)
	until(t, d, delivered(1))
	stop()
	decided(t, d, Order{Verb: Pause, Process: "a"})
	start := &Target{Kind: ToStart}
	seek, err := d.Preview(t.Context(), Order{Verb: Seek, Process: "a", To: start})
	require.NoError(t, err)
	resume, err := d.Preview(t.Context(), Order{Verb: Resume, Process: "a"})
	require.NoError(t, err)
	for _, o := range []Order{
		{Verb: Seek, Process: "a", To: start}, {Verb: Resume, Process: "a"}, {Verb: Skip, Process: "a"}, {Verb: Retry, Process: "a"}, {Verb: Pause, Process: "a"},
		{Verb: Discard, Process: "a", AllLetters: true},
	} {
		wrong := []string{"{}", "null", `{"to":""}`, `{"state":"new","at":""}`, `{"letters":"x","state":"new"}`, "[]"}
		if o.Verb != Seek {
			wrong = append(wrong, seek.Expect, resume.Expect+" {}", `{"state":"paused","more":1}`)
		} else {
			wrong = append(wrong, resume.Expect, seek.Expect+" {}")
		}
		for _, expect := range wrong {
			_, err := d.Decide(t.Context(), o, Approval{Reason: "a test", Expect: expect, Actor: "alice"})
			var known *Error
			require.ErrorAs(t, err, &known, "%s %s", o.Verb, expect)
			require.Equal(t, KindUsage, known.Kind, "%s %s: %v", o.Verb, expect, err)
		}
	}
	until(t, d, func(p Process) bool { return p.State == "paused" })
	_, err = d.Decide(t.Context(), Order{Verb: Seek, Process: "a", To: start}, Approval{Reason: "a test", Expect: seek.Expect, Actor: "alice"})
	require.NoError(t, err)
}

func TestDoctor_OneReportForAll(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	d := sit(t, config)
	first, err := d.Doctor(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, first.Findings)
	again, err := d.Doctor(t.Context())
	require.NoError(t, err)
	require.Equal(t, first.At, again.At)
}

// A look must not wait for a connection that a preview has.
func TestPreview_AsksWithTheConnectionsOfQuestions(t *testing.T) {
	t.Parallel()
	_, d := left(t)
	d.board.reader.Close() // so nothing can ask with those of the looks
	seek := Order{Verb: Seek, Process: "a", To: &Target{Kind: ToStart}}
	p, err := d.Preview(ByOperator(t.Context()), seek)
	require.NoError(t, err)
	require.Len(t, p.Records, 1)
	require.Equal(t, "ann", p.Records[0].Key)

	for range questionConns {
		d.questions <- struct{}{}
	}
	p, err = d.Preview(ByOperator(t.Context()), seek)
	require.NoError(t, err, "the preview does without")
	require.Len(t, p.Records, 1)
	require.Empty(t, p.Records[0].Key)
}
