package cursor_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestPath_NoStatementCallsAnOperatorOrFunctionOfAStranger: the schema public is
// searched first, and holds a trap for every name of PostgreSQL's own.
func TestPath_NoStatementCallsAnOperatorOrFunctionOfAStranger(t *testing.T) {
	t.Parallel()
	database(t)
	sprung := pgtest.Hostile(t)
	for _, errand := range []func(*testing.T, *pgxpool.Pool, *cursor.Store){deliverAll, decideAll, readAll, resolveAll} {
		pool := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{SearchPath: "public, pg_catalog", ApplicationName: "victim"})
		errand(t, pool, created(t, pool, "a"))
		pool.Close()
	}
	require.Empty(t, sprung())
}

func deliverAll(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) {
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	cursor.Unyielded(lease)
	require.NoError(t, lease.Advance(t.Context(), "p2", 1))
	_, err := store(t, pool, "b").Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHeld)
	require.NoError(t, lease.Note(t.Context(), poison("p3")))
	require.NoError(t, lease.PutAside(t.Context(), cursor.DeadLetter{Position: "p3", Table: "t", RecordID: "3", CreatedAt: time.Now(), Failure: poison("p3")}))
	require.NoError(t, lease.Rollback(t.Context()))
	require.NoError(t, lease.Fail(t.Context(), poison("p4")))

	require.NoError(t, s.Await(t.Context(), "sms"))
	lease, err = store(t, pool, "b").AcquireTx(t.Context(), "sms", 0)
	require.NoError(t, err)
	for _, to := range []cursor.Position{"p4", "p5"} {
		require.Equal(t, "public, pg_catalog", searchPath(t, lease), "a sink's statements have the session's")
		require.NoError(t, lease.Advance(t.Context(), to, 1))
	}
	require.NoError(t, lease.Rollback(t.Context()))
	require.Equal(t, "public, pg_catalog", searchPath(t, lease))
	require.NoError(t, lease.Halt(t.Context(), poison("p6")))
}

func searchPath(t *testing.T, lease *cursor.Lease) (path string) {
	t.Helper()
	require.NoError(t, lease.WithTx(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT pg_catalog.current_setting('search_path')`).Scan(&path)
	}))
	return path
}

func decideAll(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
	d := cursor.Decision{Actor: "me", Reason: "test"}
	for _, decide := range []func() (operator.Change, error){
		func() (operator.Change, error) { return operator.New(s).Retry(t.Context(), "sms", d) },
		func() (operator.Change, error) { return operator.New(s).Pause(t.Context(), "sms", d) },
		func() (operator.Change, error) { return operator.New(s).Resume(t.Context(), "sms", d) },
		func() (operator.Change, error) { return operator.New(s).Seek(t.Context(), "sms", "p2", d) },
		func() (operator.Change, error) {
			require.NoError(t, acquire(t, s).Halt(t.Context(), poison("p3")))
			return operator.New(s).Skip(t.Context(), "sms", d)
		},
	} {
		_, err := decide()
		require.NoError(t, err)
	}
}

func readAll(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
	defer acquire(t, s).Release()
	_, err := s.List(t.Context())
	require.NoError(t, err)
	events, err := operator.New(s).History(t.Context(), "sms", 100)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	lockers, err := s.Lockers(t.Context())
	require.NoError(t, err)
	require.Len(t, lockers, 1)
	_, err = operator.New(s).Doctor(t.Context())
	require.NoError(t, err)
}

func resolveAll(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) {
	lease := acquire(t, s)
	require.NoError(t, lease.PutAside(t.Context(), cursor.DeadLetter{Position: "p8", Table: "t", RecordID: "8", Failure: poison("p8")}))
	open, err := operator.New(s).DeadLetters(t.Context(), "sms", false, 10)
	require.NoError(t, err)
	require.Len(t, open, 2)
	d := cursor.Decision{Actor: "me", Reason: "test"}
	_, err = lease.Letter(t.Context(), open[0].ID, d)
	require.NoError(t, err)
	require.NoError(t, lease.Replayed(t.Context(), open[0].ID, d))
	_, err = operator.New(s).Discard(t.Context(), open[1].ID, d)
	require.NoError(t, err)
}
