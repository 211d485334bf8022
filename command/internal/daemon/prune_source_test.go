package daemon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// reads returns process a with a source, and a rule for its table.
func reads(t testing.TB, source string) daemon.Config {
	t.Helper()
	return ruled(t, "  a: {source: {"+source+"}, sink: {stdout: {}}, poll: 20ms}\n", "public.bookings", "keep: 1h")
}

// requireOtherSource fails unless nothing is removed because a worker reads other rows than the file has.
func requireOtherSource(t testing.TB, config daemon.Config, want string) {
	t.Helper()
	_, err := prune(t, config)
	require.ErrorIs(t, err, rules.ErrUnknown)
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, err, "Give this file the source of the worker's file")
}

// A worker that is only started, and delivers nothing, does not decide what the one that has the cursor still needs.
func TestPrune_TheWorkerThatHasTheCursorDecidesWhichRowsItNeeds(t *testing.T) {
	t.Parallel()
	pool, all := aged(t, "  a: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n", "keep: 1h", 4)
	some := reads(t, "table: public.bookings, where: customer = 'c'")
	place(t, pool, "a", string(oldAt(1)), "paused")
	require.Error(t, drain(t, some), "it stands by")
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE action = 'configure'"))
	requireOtherSource(t, some, `source.where was "" and is "customer = 'c'" here`)
	requireKept(t, all, "it takes more rows than the other one")
	require.Equal(t, 6, staying(t, pool))

	// The worker that stands by may be the next one.
	other := reads(t, "table: public.bookings, where: customer <> 'x'")
	require.Error(t, drain(t, other))
	requireOtherSource(t, other, `source.where was "customer = 'c'" and is "customer <> 'x'" here`)

	// It is the only one once it has the cursor, also if it notes nothing new.
	place(t, pool, "a", string(oldAt(1)), "running")
	deliver(t, other)
	require.EqualValues(t, 3, pruned(t, other).Rows)
	require.Equal(t, 4, count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE action = 'configure'"))
	requireOtherSource(t, some, `source.where was "customer <> 'x'" and is "customer = 'c'" here`)
}

// requireKept fails unless the pass ends at a row that a process needs.
func requireKept(t testing.TB, config daemon.Config, why string) {
	t.Helper()
	_, err := prune(t, config)
	require.ErrorContains(t, err, "has not passed row 2 ", why)
}

func TestPrune_AFormerCursorOfTheNameSaysNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE TABLE public.others (LIKE public.bookings INCLUDING ALL)")
	old(t, pool, 4)
	former := configure(t, pgtest.URL(t), "  a: {source: {table: public.others}, sink: {stdout: {}}, poll: 20ms}\n")
	deliver(t, former)
	_, err := daemon.Forget(t.Context(), former, "a", byAnn)
	require.NoError(t, err)
	_, err = operatorOf(t, reads(t, "table: public.bookings")).Seek(t.Context(), daemon.ToRecord("2"), byAnn)
	require.NoError(t, err)

	b := ruled(t, called(stdoutProcess, "b"), "public.bookings", "keep: 1h")
	deliver(t, b)
	_, err = prune(t, b)
	require.ErrorIs(t, err, rules.ErrUnknown)
	require.ErrorContains(t, err, "a")
	require.Equal(t, 4, staying(t, pool))
	requireKept(t, reads(t, "table: public.bookings"), "it begins there")
	require.Equal(t, 3, staying(t, pool))
}

func TestPrune_ARenamedProcessNeedsWhatItNeededBefore(t *testing.T) {
	t.Parallel()
	pool, _ := aged(t, "  a: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n", "keep: 1h", 4)
	place(t, pool, "a", string(oldAt(1)), "paused")
	renamed := func(source string) daemon.Config {
		return ruled(t, "  p: {source: {"+source+"}, sink: {stdout: {}}, poll: 20ms}\n", "public.bookings", "keep: 1h")
	}
	_, err := daemon.Rename(t.Context(), renamed("table: public.bookings"), "a", "p", byAnn)
	require.NoError(t, err)
	requireOtherSource(t, renamed("table: public.bookings, where: customer = 'c'"), `source.where was "" and is "customer = 'c'" here`)
	requireKept(t, renamed("table: public.bookings"), "the source is the same")
	require.Equal(t, 6, staying(t, pool))
}

// The same text is another place in the order of another column.
func TestSeek_ByOtherColumnsThanTheWorkersIsRefused(t *testing.T) {
	t.Parallel()
	pool, config, due := inverse(t, 4)
	wrong := configure(t, pgtest.URL(t), strings.Replace(byDue, "due:", "a:", 1))
	place(t, pool, "a", string(oldAt(4)), "paused")
	_, err := operatorOf(t, wrong).Seek(t.Context(), daemon.ToPosition(dueAt(2)), byAnn)
	var usage *daemon.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, `source.columns.created_at was "" and is "due_at" here`)
	require.ErrorContains(t, err, "Nothing was changed")
	_, err = operatorOf(t, config).Seek(t.Context(), daemon.ToPosition(oldAt(2)), byAnn)
	require.NoError(t, err)
	require.NoError(t, drain(t, due))
	_, err = operatorOf(t, due).Seek(t.Context(), daemon.ToPosition(dueAt(2)), byAnn)
	require.NoError(t, err)
}
