package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// busy is one session that is nearly always in a transaction of 50 ms, until the test ends.
func busy(t *testing.T) {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1})
	ctx, cancel := context.WithCancel(t.Context())
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = pool.Exec(ctx, "WITH new AS (INSERT INTO public.bookings DEFAULT VALUES RETURNING 1) SELECT pg_sleep(0.05) FROM new")
			if i == 0 {
				close(started)
			}
		}
	}()
	waittest.Receive(t, started, "the first transaction ends")
	t.Cleanup(func() {
		cancel()
		waittest.Receive(t, done, "the last transaction ends")
	})
}

// TestStatus_LeavesOutTransactionsThatComeAndGoWhereTheirTimesAreHidden: each was taken for the one before it of its session, and
// was to be ended. That there was no worker was not said.
func TestStatus_LeavesOutTransactionsThatComeAndGoWhereTheirTimesAreHidden(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	require.NoError(t, drain(t, config))
	left(t, pool)
	_, config = granted(t, pool, config)
	busy(t)
	for range 3 {
		all, text, _ := status(t, config, "")
		require.Positive(t, all[0].Lag.Records)
		require.Empty(t, all[0].Holding)
		require.Equal(t, daemon.HoldNobody, all[0].Hold.Kind, text)
		require.NotContains(t, problems(doctor(t, config)), "held back")
	}
}

// TestStatus_SaysThatThereIsNoWorkerBeforeItNamesAWriter: status named the writer, and said nothing of the worker.
func TestStatus_SaysThatThereIsNoWorkerBeforeItNamesAWriter(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	require.NoError(t, drain(t, config))
	left(t, pool)
	open(t, "importer", "INSERT INTO public.bookings DEFAULT VALUES")
	insert(t, pool, 1)
	all, text, document := status(t, config, "")
	require.Equal(t, daemon.HoldNobody, all[0].Hold.Kind)
	require.Regexp(t, `(?m)^a: no worker runs it: .*\na: a worker that starts now may have to wait for pid \d+ .application "importer", .*; next: wait until it ends$`, text)
	require.Len(t, document["held_back_by"], 1)
	require.NotContains(t, text, "pg_terminate_backend")
}

// waitingRecord has a record that nobody delivers, though no worker is known to be absent, and that is stamped before all that begins
// later.
func waitingRecord(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	created(t, pool)
	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '1 second')")
}

// TestStatus_AWriterThatBeganAfterWhatWaitsIsNotToBeEnded: it can insert nothing before the record that waits, and was to be ended.
// It is named all the same: a fence that has seen nothing before it waits for it.
func TestStatus_AWriterThatBeganAfterWhatWaitsIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	waitingRecord(t, pool)
	open(t, "importer", "INSERT INTO public.bookings DEFAULT VALUES")
	all, text, _ := status(t, config, "")
	require.Equal(t, daemon.HoldWriter, all[0].Hold.Kind)
	require.Regexp(t, `(?m)^a: records may be held back by pid \d+ .application "importer", .*: its open transaction began after the first of them was stamped, so it inserts nothing before that one, but a worker may wait for it; next: wait until it ends$`, text)
	findings := doctor(t, config)
	requireHeld(t, findings, "records of public.bookings may be held back by", "wait until it ends")
	requireNoEnd(t, text, findings)

	// By ids nothing tells which began first.
	byID := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}}\n")
	_, text, _ = status(t, byID, "")
	require.Contains(t, text, "pg_terminate_backend")
	requireHeld(t, doctor(t, byID), "records of public.bookings are held back by", "pg_terminate_backend")
}

// TestStatus_AWriterIsNoHoldWhileAWorkerDelivers: what is first was with the receiver, and producers were to be ended.
func TestStatus_AWriterIsNoHoldWhileAWorkerDelivers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	address, called, release := silent(t)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+address+"'}}, start: beginning, poll: 20ms}\n")
	insert(t, pool, 1)
	working(t, config)
	t.Cleanup(release)
	waittest.Receive(t, called, "the receiver is called")

	open(t, "importer", "INSERT INTO public.bookings DEFAULT VALUES") // after what is first
	all, text, _ := status(t, config, "")
	require.EqualValues(t, 1, all[0].Lag.Records)
	require.Empty(t, all[0].Holding, text)
	requireNoWriterHolds(t, all[0])

	// It began before the first record, as far as the time says.
	exec(t, pool, "UPDATE public.bookings SET created_at = clock_timestamp() + interval '100 milliseconds'")
	exec(t, pool, "SELECT pg_sleep_until(max(created_at)) FROM public.bookings")
	all, text, _ = status(t, config, "")
	require.Len(t, all[0].Holding, 1)
	requireNoWriterHolds(t, all[0])
	require.Regexp(t, `(?m)^a: newer records may be held back by pid \d+ .application "importer", .*: its open transaction may still insert before them; next: wait until it ends$`, text)
}

// requireNoWriterHolds fails if a writer is the reason of a wait. The call of the receiver may be: it lasts as long as the test.
func requireNoWriterHolds(t testing.TB, s daemon.Status) {
	t.Helper()
	if s.Hold != nil {
		require.Equal(t, daemon.HoldSink, s.Hold.Kind)
	}
}

// TestStatus_NeverNamesAWorkerAsAWriter: who asks has another role than the worker, as
// an operator has.
func TestStatus_NeverNamesAWorkerAsAWriter(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	exec(t, pool, "ALTER TABLE public.bookings ALTER COLUMN created_at SET DEFAULT now()")
	require.NoError(t, drain(t, config))
	role, address := stranger(t, pool)
	exec(t, pool, fmt.Sprintf(`GRANT ALL ON SCHEMA od TO %[1]q; GRANT ALL ON ALL TABLES IN SCHEMA od, public TO %[1]q; GRANT pg_read_all_stats TO %[1]q`, role))
	asked := config
	asked.Database = address

	insert(t, pool, 1)
	open(t, config.Watching("ordered-dispatcher"), "SELECT") // the worker, of the owner's role
	for _, name := range []string{cursor.ApplicationLease + "a", "ordered-dispatcher read x", cursor.ApplicationOperator + "a"} {
		open(t, name, "SELECT")
	}
	exec(t, pool, "UPDATE od.cursor SET position = ''")
	all, text, document := status(t, asked, "")
	for _, w := range all[0].Holding {
		require.False(t, w.Ours, "%+v", w)
	}
	require.NotContains(t, text, cursor.ApplicationLease)
	require.Len(t, document["held_back_by"], 1, "the session of no such name, which is not ended in this test")
	require.NotContains(t, problems(doctor(t, asked)), cursor.ApplicationLease)

	// A worker of another role waits for them.
	other := pgtest.Pool(t, address, pgtest.PoolConfig{ApplicationName: config.Watching("second")})
	exec(t, other, "INSERT INTO od.cursor_event (process_name, actor, action, detail) SELECT process_name, actor, action, detail FROM od.cursor_event WHERE action = 'watch'")
	_, text, _ = status(t, asked, "")
	require.Regexp(t, `a: records are held back by a session of the dispatcher, of another role than its worker: pid \d+ .application "ordered-dispatcher lease a".*; next: run all of the dispatcher as one role`, text)
	require.NotRegexp(t, `ordered-dispatcher lease a.*pg_terminate_backend`, text)
	findings := doctor(t, asked) // a note at first, a warning later
	require.True(t, slices.ContainsFunc(findings, func(f daemon.Finding) bool {
		return strings.Contains(f.Problem, `application "ordered-dispatcher lease a"`) && strings.HasPrefix(f.Fix, "run all of the dispatcher as one role")
	}), "%+v", findings)
}
