package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestBuild_HandsOverWhatTheFileSays(t *testing.T) {
	t.Parallel()
	config, err := parse(`processes: {a: {source: {table: t}, sink: {webhook: {url: "http://h", timeout: 3s}},
		start: end, batch: 7, checkpoint: 3, poll: 30ms, retry: {initial: 2s, max: 9s, jitter: 5%, attempts: 4}, on_timeout: halt}}`)
	require.NoError(t, err)
	discarded := slog.New(slog.DiscardHandler)
	require.Equal(t, processor.Config{
		Process: "a", Start: processor.End, Batch: 7, Checkpoint: 3, Poll: 30 * time.Millisecond, Grace: time.Second,
		Retry:         processor.Retry{Initial: 2 * time.Second, Max: 9 * time.Second, Jitter: 5, Attempts: 4},
		HaltOnTimeout: true, Logger: discarded,
	}, daemon.ProcessorConfig(config.Processes[0], time.Second))
	require.Equal(t, 8*time.Second, daemon.CallTimeout(t, config.Processes[0]), "a margin beyond the webhook's own")

	config, err = parse(`processes: {a: {source: {table: t}, sink: {webhook: {url: "http://h", timeout: 1h}}},
		b: {source: {table: t}, sink: {webhook: {url: "http://h"}}}}`)
	require.NoError(t, err)
	require.Equal(t, time.Hour, daemon.CallTimeout(t, config.Processes[0]), "no more than the processor allows")
	require.Equal(t, 15*time.Second, daemon.CallTimeout(t, config.Processes[1]))
	require.Equal(t, processor.Config{Process: "b", Logger: discarded}, daemon.ProcessorConfig(config.Processes[1], 0))
}

// A statement may hold a secret. Its digest in the audit differs from one process to
// the other, so likely secrets cannot be tried against many rows at once.
func TestDrain_SaltsTheDigestOfWhatMayBeSecret(t *testing.T) {
	t.Parallel()
	pool := database(t)
	statement := "INSERT INTO public.effects SELECT 'hunter2'"
	config := func(name string) string {
		return fmt.Sprintf("  %s: {source: {table: public.bookings}, start: end, sink: {sql: {statement: %q}}}\n", name, statement)
	}
	for range 2 {
		_ = drain(t, configure(t, pgtest.URL(t), config("one")))
		_ = drain(t, configure(t, pgtest.URL(t), config("two")))
	}
	rows, err := pool.Query(t.Context(), "SELECT detail->>'sink.sql.statement' FROM od.cursor_event WHERE action = 'configure'")
	require.NoError(t, err)
	digests, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, digests, 2, "each is noted once: the salt is that of the last note")
	require.NotEqual(t, digests[0], digests[1])
	require.Regexp(t, `^sha256:[0-9a-f]{32}$`, digests[0])
}

// However short a drain is, its configuration is in the audit, and only once.
func TestDrain_NotesItsConfiguration(t *testing.T) {
	t.Parallel()
	pool := database(t)
	noted := func() (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM od.cursor_event WHERE action = 'configure'").Scan(&n))
		return n
	}
	first := configure(t, pgtest.URL(t), stdoutProcess)
	require.NoError(t, drain(t, first))
	require.NoError(t, drain(t, first))
	require.Equal(t, 1, noted())

	blocker, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = blocker.Rollback(context.Background()) }()
	_, err = blocker.Exec(t.Context(), "LOCK TABLE od.cursor_event IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- drain(t, configure(t, pgtest.URL(t), strings.Replace(stdoutProcess, "bookings", "bookings, where: id > 0", 1)))
	}()
	require.Eventually(t, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'od.cursor_event'::regclass AND NOT granted)").Scan(&waiting)
		return err == nil && waiting || len(done) > 0
	}, 30*time.Second, time.Millisecond)
	require.Never(t, func() bool { return len(done) > 0 }, 300*time.Millisecond, 10*time.Millisecond, "it waits for the note")
	require.NoError(t, blocker.Rollback(t.Context()))
	require.NoError(t, <-done)
	require.Equal(t, 2, noted())
}
