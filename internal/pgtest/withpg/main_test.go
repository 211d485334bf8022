package main

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// TestMakePostgres_StaysWithoutInput: as in the background. It ends with SIGTERM.
func TestMakePostgres_StaysWithoutInput(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", "../../..", "postgres")
	cmd.Env = append(os.Environ(), "DATABASE_URL=", "MAKEFLAGS=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	address := strings.TrimPrefix(strings.TrimSpace(line), "export DATABASE_URL=")
	conn := pgtest.Connect(t, address)
	require.NoError(t, conn.Ping(t.Context()))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, lines) // ends when the last process of it has ended
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	_, err = pgx.Connect(t.Context(), address)
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
