package cursor_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// superseded is a lease whose transaction was ended by what it called, and whose
// epoch is over: another worker came between.
func superseded(t *testing.T) (*cursor.Lease, *pgxpool.Pool) {
	t.Helper()
	pool := database(t)
	exec(t, pool, `CREATE TABLE dispatch.effect (n int)`)
	a := created(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1}), "a")
	zombie, err := a.AcquireTx(t.Context(), "sms", 0)
	require.NoError(t, err)
	t.Cleanup(zombie.Release)
	inTx(t, zombie, `COMMIT`) // lets go of the lock
	inTx(t, zombie, `BEGIN`)
	acquire(t, store(t, pool, "b")).Release()
	return zombie, pool
}

func inTx(t *testing.T, lease *cursor.Lease, sql string) {
	t.Helper()
	require.NoError(t, lease.WithTx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Conn().Exec(t.Context(), sql)
		return err
	}))
}

// TestOneRow_WhatChangesNoRowCommitsNothing: the COMMIT is on its way when the
// statement before it turns out to have changed no row.
func TestOneRow_WhatChangesNoRowCommitsNothing(t *testing.T) {
	t.Parallel()
	failure := cursor.Failure{Position: "p1", RecordID: "1", Attempts: 1, Error: "no"}
	for name, end := range map[string]func(context.Context, *cursor.Lease) error{
		"advance": func(ctx context.Context, l *cursor.Lease) error { return l.Advance(ctx, "p1", 1) },
		"advance when it looks for waiters": func(ctx context.Context, l *cursor.Lease) error {
			cursor.Unyielded(l)
			return l.Advance(ctx, "p1", 1)
		},
		"fail": func(ctx context.Context, l *cursor.Lease) error { return l.Fail(ctx, failure) },
		"note": func(ctx context.Context, l *cursor.Lease) error { return l.Note(ctx, failure) },
		"halt": func(ctx context.Context, l *cursor.Lease) error { return l.Halt(ctx, failure) },
		"put aside": func(ctx context.Context, l *cursor.Lease) error {
			return l.PutAside(ctx, cursor.DeadLetter{Position: "p1", Table: "t", RecordID: "1", Failure: failure})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease, pool := superseded(t)
			inTx(t, lease, `INSERT INTO dispatch.effect VALUES (1)`)
			err := end(t.Context(), lease)
			require.ErrorIs(t, err, cursor.ErrLeaseLost)
			require.ErrorContains(t, err, "not as it was locked")
			var left int
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM dispatch.effect)
				+ (SELECT count(*) FROM dispatch.cursor_event WHERE action <> 'create')
				+ (SELECT count(*) FROM dispatch.dead_letter)`).Scan(&left))
			require.Zero(t, left, "effects and events of a lease that was over")
		})
	}
}
