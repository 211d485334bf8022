package cursor_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// lockedBy locks rows, and forgets them.
func lockedBy(t *testing.T, sql string) pgx.Tx {
	t.Helper()
	return pgtest.Begin(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "psql"}), sql)
}

// TestReplay_NamesAStrangerWhoHoldsTheRowOrTheLetter: "context deadline exceeded" helps no one.
func TestReplay_NamesAStrangerWhoHoldsTheRowOrTheLetter(t *testing.T) {
	t.Parallel()
	const who = `locked.*pid \d+ \(application "psql", user "\w+"\) since 2.*SELECT pg_terminate_backend\(pid\) FROM pg_stat_activity WHERE pid = \d+ AND xact_start = `
	s := created(t, database(t), "a")
	lease := acquire(t, s)
	require.NoError(t, lease.PutAside(t.Context(), letter()))
	lease.Release()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}

	row := lockedBy(t, "SELECT FROM dispatch.cursor FOR UPDATE")
	err := s.Await(soon(), "sms")
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.Regexp(t, who, err.Error())
	require.NoError(t, row.Rollback(t.Context()))

	lockedBy(t, "SELECT FROM dispatch.dead_letter FOR UPDATE")
	d := alice
	d.Timeout = 300 * time.Millisecond
	_, err = operator.New(s).Discard(t.Context(), 1, d)
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.Regexp(t, who, err.Error())
	_, err = acquire(t, s).Letter(soon(), 1, alice)
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.Regexp(t, who, err.Error())
}

// TestReplay_WithoutAConnectionToLookSaysSo: it blamed "a worker or an operator".
func TestReplay_WithoutAConnectionToLookSaysSo(t *testing.T) {
	t.Parallel()
	database(t)
	one := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1})
	s, err := cursor.NewStore(one, cursor.Config{Schema: schema, Worker: "a", Timeout: time.Second})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "sms", "")
	require.NoError(t, err)
	lease := acquire(t, s)
	require.NoError(t, lease.PutAside(t.Context(), letter()))
	lockedBy(t, "SELECT FROM dispatch.dead_letter FOR UPDATE")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = lease.Letter(ctx, 1, alice)
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.ErrorContains(t, err, "who it is could not be found: find who has locked the cursors: no answer in time: no connection to the database, of a pool of 1, within 5s")
}

// TestRead_NamesASessionThatLetsNoOneRead: a command said "no answer" and no more.
func TestRead_NamesASessionThatLetsNoOneRead(t *testing.T) {
	t.Parallel()
	const who = `(no answer .*|not free within 100ms): pid \d+ \(application "psql", user "\w+"\) since 2\S+Z has locked a table of the cursors; end its transaction, or: SELECT pg_terminate_backend\(pid\) FROM pg_stat_activity WHERE pid = \d+ AND xact_start = `
	pool := database(t)
	created(t, pool, "a")
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "b", Timeout: time.Second})
	require.NoError(t, err)
	lockedBy(t, "LOCK TABLE dispatch.cursor, dispatch.dead_letter IN ACCESS EXCLUSIVE MODE")
	for name, read := range map[string]func() error{
		"rows":         func() error { _, err := s.List(t.Context()); return err },
		"lockers":      func() error { _, err := s.Lockers(t.Context()); return err },
		"dead letters": func() error { _, err := operator.New(s).DeadLetters(t.Context(), "", false, 1); return err },
		"an operator": func() error {
			d := alice
			d.Timeout = 100 * time.Millisecond
			_, err := operator.New(s).Pause(t.Context(), "sms", d)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, who, read().Error())
		})
	}
}
