package daemon_test

import (
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestPool_AStrangerIsNotHeardOutBeforeTheLogin(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				server := pgproto3.NewBackend(conn, conn)
				_, _ = server.ReceiveStartupMessage()
				server.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "22000", Message: strings.Repeat("m", 2<<20)})
				_ = server.Flush()
			}()
		}
	}()
	pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, "postgres://u@"+listener.Addr().String()+"/d?sslmode=disable", 1))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	err = pool.Ping(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "22000", "the message was read to its end")
}

func TestPool_TakesLargeMessagesAfterTheLogin(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, pgtest.URL(t), 1))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	var text string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT pg_catalog.repeat('x', 3000000)").Scan(&text))
	require.Len(t, text, 3_000_000)
}
