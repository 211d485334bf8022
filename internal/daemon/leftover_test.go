package daemon_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
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

func TestRun_WarnsOfANewNameWhoseStartWasLeftInTheFile(t *testing.T) {
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
	log = drainLog(t, renamed)
	require.Contains(t, log, warning)
	require.Contains(t, log, "(a, second)")
	require.Contains(t, log, "ordered-dispatcher process rename a renamed")
	require.Contains(t, log, "start=beginning")
	require.NotContains(t, drainLog(t, renamed), warning, "it has a cursor of its own now")
}
