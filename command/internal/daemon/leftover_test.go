package daemon_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// drainLog is drain with what it logs.
func drainLog(t testing.TB, config daemon.Config) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := &buffer{}
	require.NoError(t, daemon.Run(ctx, daemon.RunConfig{Config: config, Drain: true, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.NewTextHandler(log, nil))}))
	return log.String()
}

func TestRun_RefusesANewNameWhoseStartWasLeftInTheFile(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	started := strings.Replace(stdoutProcess, "{source", "{start: beginning, source", 1)
	const warning = "a cursor that no process of this file has reads the same table"
	log := drainLog(t, configure(t, pgtest.URL(t), started))
	require.NotContains(t, log, warning, "it is the first")

	both := started + strings.Replace(started, "a:", "second:", 1)
	require.NotContains(t, drainLog(t, configure(t, pgtest.URL(t), both)), warning, "the file has both")

	exec(t, pool, "CREATE TABLE public.others (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE INDEX ON public.others (created_at, id)")
	elsewhere := strings.NewReplacer("a:", "other:", "bookings", "others").Replace(started)
	require.NotContains(t, drainLog(t, configure(t, pgtest.URL(t), elsewhere)), warning, "it reads another table")

	renamed := configure(t, pgtest.URL(t), strings.Replace(started, "a:", "renamed:", 1))
	var usage *daemon.UsageError
	err := daemon.Run(t.Context(), daemon.RunConfig{Config: renamed, Drain: true, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, warning+" into the same sink (a, second)")
	require.ErrorContains(t, err, "`ordered-dispatcher process rename a renamed -c FILE --reason …`")
	require.ErrorContains(t, err, "`ordered-dispatcher seek renamed -c FILE --to-start --reason …`")
	err = daemon.Run(t.Context(), daemon.RunConfig{Config: renamed, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, warning, "without --drain, too")
	require.Equal(t, 0, cursorsOf(t, pool, "renamed"))

	other := drainLog(t, configure(t, pgtest.URL(t), strings.NewReplacer("a:", "filtered:", "{start: beginning, source: {", "{start: beginning, source: {where: id > 1, ").Replace(started)))
	require.Contains(t, other, warning, "it may be another process of another file: that is no more than a warning")

	exec(t, pool, "DELETE FROM public.bookings")
	drainLog(t, renamed) // there is nothing to send twice
	require.Equal(t, 1, cursorsOf(t, pool, "renamed"))
}

// cursorsOf is how many cursors have a name.
func cursorsOf(t testing.TB, pool *pgxpool.Pool, process string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM od.cursor WHERE process_name = $1", process).Scan(&n))
	return n
}
