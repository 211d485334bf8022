package daemon_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// byDue reads the bookings in the inverse order: the positions have the kind of those by created_at.
const byDue = "  due: {source: {table: public.bookings, columns: {created_at: due_at}}, sink: {stdout: {}}, poll: 20ms}\n"

// dueAt is the position of the n-th of the old bookings in that order.
func dueAt(n int) cursor.Position {
	at := time.Date(2026, 2, 1, 0, -n, 0, 0, time.UTC)
	return cursor.Position(fmt.Sprintf("at.int:%s/%020d", at.Format("2006-01-02T15:04:05.000000Z"), n))
}

// inverse is a table with old and new bookings in two orders, which the processes of both configurations have delivered.
func inverse(t testing.TB, n int) (pool *pgxpool.Pool, config, due daemon.Config) {
	t.Helper()
	pool = database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD due_at timestamptz NOT NULL DEFAULT clock_timestamp(); CREATE UNIQUE INDEX ON public.bookings (due_at, id)")
	overdue(t, pool, n)
	insert(t, pool, 3)
	config = ruled(t, stdoutProcess, "public.bookings", "keep: 1h")
	due = configure(t, pgtest.URL(t), byDue)
	deliver(t, config)
	return pool, config, due
}

// overdue inserts old bookings in both orders.
func overdue(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	old(t, pool, n)
	exec(t, pool, "UPDATE public.bookings SET due_at = timestamptz '2026-02-01 00:00Z' - (created_at - timestamptz '2026-01-01 00:00Z') WHERE created_at < '2026-01-02'")
}

// A position by another column may look like one after all that was removed.
func TestSeek_ByOtherColumnsThanTheRemovalIsRefused(t *testing.T) {
	t.Parallel()
	pool, config, due := inverse(t, 4)
	pruned(t, config)
	require.NoError(t, drain(t, due))
	refused := func() {
		t.Helper()
		for _, to := range []daemon.Target{daemon.ToBeginning, daemon.ToPosition(dueAt(4)), daemon.ToPosition(dueAt(2))} {
			require.True(t, refusedSeek(t, due, to).Apart)
		}
	}
	refused()

	overdue(t, pool, 2)
	deliver(t, config)
	require.NoError(t, drain(t, due))
	pruned(t, config)
	require.Equal(t, 3, staying(t, pool))
	refused() // the later removal is known in this order, too, and the first one is not
	err := daemon.ShowRecords(t.Context(), due, "due", daemon.Ask{Limit: 10}, &bytes.Buffer{})
	require.ErrorIs(t, err, daemon.ErrRemoved)
	require.Equal(t, oldAt(4), refusedSeek(t, config, daemon.ToPosition(oldAt(3))).Through)
}

func TestSeek_ARemovalIsKnownInTheOrderOfEachColumn(t *testing.T) {
	t.Parallel()
	pool, config, due := inverse(t, 4)
	require.NoError(t, drain(t, due))
	pruned(t, config)
	require.Equal(t, 3, staying(t, pool))
	require.Equal(t, dueAt(1), refusedSeek(t, due, daemon.ToPosition(dueAt(2))).Through)
	require.Equal(t, oldAt(4), refusedSeek(t, config, daemon.ToPosition(oldAt(3))).Through)
	for config, to := range map[*daemon.Config]cursor.Position{&due: dueAt(1), &config: oldAt(4)} {
		_, err := operatorOf(t, *config).Seek(t.Context(), daemon.ToPosition(to), byAnn)
		require.NoError(t, err)
		require.NoError(t, drain(t, *config))
	}

	// Once no process reads in an order, removals are not known in it any more.
	_, err := daemon.Forget(t.Context(), config, "due", byAnn)
	require.NoError(t, err)
	overdue(t, pool, 1)
	deliver(t, config)
	pruned(t, config)
	require.True(t, refusedSeek(t, due, daemon.ToPosition(dueAt(1))).Apart)
}

// A row that comes first in the order of the rule may be the last one of a process.
func TestPrune_ARowThatAProcessByOtherColumnsHasNotPassedStays(t *testing.T) {
	t.Parallel()
	pool, config, due := inverse(t, 4)
	require.NoError(t, drain(t, due))
	place(t, pool, "due", string(dueAt(2)), "paused") // it has passed 4, 3 and 2
	_, err := prune(t, config)
	require.ErrorContains(t, err, "due (paused) has not passed row 1 of 2026-01-01T00:01:00Z")
	require.Equal(t, 7, staying(t, pool))

	place(t, pool, "due", string(dueAt(4)), "paused") // it has passed 4
	exec(t, pool, "DELETE FROM public.bookings WHERE id = 1")
	_, err = prune(t, config)
	require.ErrorContains(t, err, "due (paused) has not passed row 2")
	place(t, pool, "due", string(dueAt(1)), "running")
	require.EqualValues(t, 3, pruned(t, config).Rows)
	require.Equal(t, 3, staying(t, pool))
}

// A row that the file's where leaves out may be one that the worker has yet to deliver.
func TestPrune_RefusesAnotherSourceThanTheWorkers(t *testing.T) {
	t.Parallel()
	const process = "  a: {source: {table: public.bookings, where: customer = 'c'}, sink: {stdout: {}}, poll: 20ms}\n"
	pool, worker := aged(t, process, "keep: 1h", 4)
	exec(t, pool, `CREATE TABLE public.others (LIKE public.bookings INCLUDING ALL);
		ALTER TABLE public.bookings ADD changed_at timestamptz NOT NULL DEFAULT clock_timestamp(); CREATE INDEX ON public.bookings (changed_at, id)`)
	place(t, pool, "a", string(oldAt(0)), "paused")
	file := func(source string) daemon.Config {
		return ruled(t, "  a: {source: {"+source+"}, sink: {webhook: {url: 'http://127.0.0.1:1'}}, poll: 20ms}\n"+called(stdoutProcess, "b"), "public.bookings", "keep: 1h")
	}
	for source, want := range map[string]string{
		"table: public.bookings, where: customer <> 'c'":            `source.where was "customer = 'c'" and is "customer <> 'c'" here`,
		"table: public.bookings, where: customer = 'c', order: id":  `source.order was "created_at" and is "id" here`,
		"table: public.bookings, columns: {created_at: changed_at}": `source.columns.created_at was "" and is "changed_at" here`,
		"table: public.others":                                      `source.table was "public.bookings" and is "public.others" here`,
	} {
		_, err := prune(t, file(source))
		require.ErrorIs(t, err, rules.ErrUnknown, source)
		require.ErrorContains(t, err, "process a: worker ")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "Give this file the source of the worker's file")
	}
	require.Equal(t, 7, staying(t, pool))
	for _, same := range []string{"table: public.bookings, where: customer = 'c'", "table: public.bookings"} { // the last one takes all rows
		_, err := prune(t, file(same))
		require.ErrorContains(t, err, "would pass the cursor of a, b, so it stopped there", same)
	}

	// Once a worker with another source has the cursor, that is the right one.
	place(t, pool, "a", string(oldAt(0)), "running")
	other := ruled(t, strings.Replace(process, "= 'c'", "<> 'x'", 1), "public.bookings", "keep: 1h")
	deliver(t, other)
	require.EqualValues(t, 4, pruned(t, other).Rows)
	_, err := prune(t, worker)
	require.ErrorIs(t, err, rules.ErrUnknown)
}
