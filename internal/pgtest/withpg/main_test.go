package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
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

func TestRun_PassesTheStatusOn(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://elsewhere/db")
	status, err := run(silent, []string{"sh", "-c", `test "$DATABASE_URL" = postgres://elsewhere/db && exit 7`})
	require.NoError(t, err)
	require.Equal(t, 7, status)

	status, err = run(silent, []string{"sh", "-c", "kill -9 $$"})
	require.ErrorContains(t, err, "signal: killed")
	require.Equal(t, exitFailed, status)

	status, err = run(silent, []string{"no-such-command"})
	require.ErrorContains(t, err, "no-such-command")
	require.Equal(t, exitFailed, status)
}
