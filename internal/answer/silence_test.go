package answer_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func ask(t testing.TB, pool *pgxpool.Pool, sql string) error {
	t.Helper()
	wait := answer.Wait{Connection: time.Minute, Answer: time.Minute}
	return answer.OnConn(t.Context(), pool, wait, func(ctx context.Context, conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// TestOnConn_ASilentServerIsNotWaitedFor: and the other connections to it are given up.
func TestOnConn_ASilentServerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	pool := pgtest.Pool(t, address, pgtest.PoolConfig{})
	t.Cleanup(l.Close)
	conns := pool.AcquireAllIdle(t.Context())
	require.Empty(t, conns)
	one, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	idle, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	one.Release()
	idle.Release()
	l.OnData(func(fromServer bool, _ []byte) {
		if !fromServer {
			l.Stall()
		}
	})
	err = ask(t, pool, "SELECT 1")
	require.ErrorIs(t, err, answer.ErrSilent)
	require.ErrorIs(t, err, answer.ErrNone)
	require.Zero(t, pool.Stat().IdleConns())
}

// TestOnConn_ASlowStatementIsWaitedFor: its server answers others.
func TestOnConn_ASlowStatementIsWaitedFor(t *testing.T) {
	t.Parallel()
	require.NoError(t, ask(t, pgtest.Database(t), "SELECT pg_sleep(9)"))
}

// TestOnConn_ARefusedKnockIsAnAnswer: of a host that lives.
func TestOnConn_ARefusedKnockIsAnAnswer(t *testing.T) {
	t.Parallel()
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	pool := pgtest.Pool(t, address, pgtest.PoolConfig{})
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	conn.Release()
	l.Retarget("127.0.0.1:1") // nothing listens there
	require.NoError(t, ask(t, pool, "SELECT pg_sleep(9)"))
}
