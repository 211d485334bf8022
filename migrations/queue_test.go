package migrations_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// undo takes back the migrations down to the last one that locks the cursor table.
func undo(t *testing.T, config migrations.Config) {
	t.Helper()
	for {
		undone, err := migrations.Down(t.Context(), config)
		require.NoError(t, err)
		require.NotNil(t, undone)
		if undone.Version == 3 {
			return
		}
	}
}

// slowCall leaves a migration that locks the cursor table to be applied, and a transaction open that has the cursor
// table, as a worker's does while its receiver has a record.
func slowCall(t *testing.T) (*pgxpool.Pool, pgx.Tx, uint32) {
	t.Helper()
	pool := pgtest.Database(t)
	config := migrations.Config{ConnString: pgtest.URL(t)}
	_, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	undo(t, config)
	tx := pgtest.Begin(t, pool, "SET LOCAL application_name = 'ordered-dispatcher lease slow'")
	pgtest.Exec(t, tx, "SELECT 1 FROM public.cursor FOR UPDATE SKIP LOCKED")
	return pool, tx, tx.Conn().PgConn().PID()
}

func TestUp_BehindASlowCallKeepsNoOneFromTheCursors(t *testing.T) {
	t.Parallel()
	pool, tx, _ := slowCall(t)
	done := make(chan error, 1)
	go func() { done <- up(migrations.Config{ConnString: pgtest.URL(t)}) }()
	for range 3 {
		require.Eventually(t, func() bool {
			var waits bool
			err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'public.cursor'::regclass AND NOT granted)").Scan(&waits)
			return err == nil && waits
		}, longest, 2*time.Millisecond, "the migration tries again")
		// The reader waits behind it, and goes on while the slow call does.
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(other pgx.Tx) error {
			if _, err := other.Exec(t.Context(), "SET LOCAL lock_timeout = '15s'"); err != nil {
				return err
			}
			_, err := other.Exec(t.Context(), "SELECT 1 FROM public.cursor")
			return err
		}))
	}
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-done)
	for _, m := range status(t, migrations.Config{ConnString: pgtest.URL(t)}) {
		require.NotZero(t, m.AppliedAt, m.Name)
	}
}

func TestUp_NamesTheSessionThatHasTheTables(t *testing.T) {
	t.Parallel()
	_, _, pid := slowCall(t)
	var waited []string
	config := migrations.Config{ConnString: pgtest.URL(t), Waiting: func(session string) { waited = append(waited, session) }}
	err := up(config.LockWithin(300 * time.Millisecond))
	require.ErrorIs(t, err, answer.ErrNone)
	session := fmt.Sprintf("pid %d (application 'ordered-dispatcher lease slow', user ", pid)
	require.ErrorContains(t, err, session)
	require.ErrorContains(t, err, "pause its process")
	require.Len(t, waited, 1, "each is named once")
	require.Contains(t, waited[0], session)
}

// TestUp_EndsNoOtherTransactionOfASession: whoever ended the session by its pid ended what it did by then.
func TestUp_EndsNoOtherTransactionOfASession(t *testing.T) {
	t.Parallel()
	pool, worker, _ := slowCall(t)
	conn := pgtest.Connect(t, pgtest.URL(t))
	proposed := func() string {
		pgtest.Exec(t, conn, "BEGIN; SELECT FROM public.cursor")
		err := up(migrations.Config{ConnString: pgtest.URL(t)}.LockWithin(300 * time.Millisecond))
		found := regexp.MustCompile(`\(to end it: (SELECT .*'walsync'\))\)`).FindAllStringSubmatch(err.Error(), -1)
		require.Len(t, found, 1, "%v: and not that of the worker", err)
		return found[0][1]
	}
	former := proposed()
	pgtest.Exec(t, conn, "ROLLBACK")
	now := proposed()
	pgtest.Exec(t, pool, former)
	require.NoError(t, conn.Ping(t.Context()))
	pgtest.Exec(t, pool, now)
	require.Error(t, conn.Ping(t.Context()))
	require.NoError(t, worker.Conn().Ping(t.Context()))
}

// TestUp_SaysThatASessionWaitsForAStandby: it was to be ended, and what it has committed would be lost in a failover.
func TestUp_SaysThatASessionWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	config := migrations.Config{ConnString: server.URL()}
	_, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	undo(t, config)
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()"} {
		pgtest.Exec(t, pool, sql)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = pool.Exec(ctx, "ALTER TABLE public.cursor ALTER holder SET DEFAULT ''")
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	require.Eventually(t, func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep')").Scan(&waits)
		return err == nil && waits
	}, longest, 2*time.Millisecond)
	err = up(config.LockWithin(300 * time.Millisecond))
	require.ErrorContains(t, err, ", whose COMMIT waits for a synchronous standby")
	require.ErrorContains(t, err, "Do not end a session whose COMMIT waits for a synchronous standby")
	require.NotContains(t, err.Error(), "pg_terminate_backend")
}

func TestUp_EndsWithItsContextWhileTheTablesAreInUse(t *testing.T) {
	t.Parallel()
	slowCall(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := migrations.Up(ctx, migrations.Config{ConnString: pgtest.URL(t), Waiting: func(string) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
}
