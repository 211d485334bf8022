package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest/child"
)

// silent keeps the log out of the tests' output.
var silent = slog.New(slog.DiscardHandler)

func TestRun_CommandHasAServerThatEndsWithIt(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	told := filepath.Join(t.TempDir(), "told")
	status, err := run(silent, []string{"sh", "-c", `printf %s "$DATABASE_URL" >"$0"`, told})
	require.NoError(t, err)
	require.Zero(t, status)
	address, err := os.ReadFile(told)
	require.NoError(t, err)
	require.Contains(t, string(address), "postgres://postgres:")
	_, err = pgx.Connect(t.Context(), string(address))
	require.ErrorContains(t, err, "connection refused")
}

func TestRun_SaysFirstThatItUsesAServerOfYours(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://u:secret@elsewhere:7/db")
	t.Setenv(pgtest.Announced, "")
	var log bytes.Buffer
	status, err := run(slog.New(slog.NewTextHandler(&log, nil)), []string{"sh", "-c", `test -n "$ORDERED_DISPATCHER_TEST_SERVER"`})
	require.NoError(t, err)
	require.Zero(t, status, "the test binaries need not say it again")
	require.Contains(t, log.String(), "the tests make and drop databases and roles there")
	require.Contains(t, log.String(), "elsewhere:7")
	require.NotContains(t, log.String(), "secret")
}

func TestRun_PassesTheStatusOn(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://elsewhere/db")
	status, err := run(silent, []string{"sh", "-c", `test "$DATABASE_URL" = postgres://elsewhere/db && exit 7`})
	require.NoError(t, err)
	require.Equal(t, 7, status)

	status, err = run(silent, []string{"sh", "-c", "kill -9 $$"})
	require.ErrorContains(t, err, "signal: killed")
	require.Equal(t, child.Failed, status)

	status, err = run(silent, []string{"no-such-command"})
	require.ErrorContains(t, err, "no-such-command")
	require.Equal(t, child.Failed, status)
}
