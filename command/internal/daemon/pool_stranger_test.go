package daemon_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

func TestPool_AStrangerIsNotHeardOutBeforeTheLogin(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]tcptest.Moment{"before the password": tcptest.Greeting, "after it": tcptest.Login} {
		address := tcptest.Postgres(t, at, tcptest.Long(2<<20))
		pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, "postgres://u@"+address+"/d?sslmode=disable", 1))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		err = pool.Ping(t.Context())
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "22000", "%s: the message was read to its end", name)
	}
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

// The driver keeps each parameter that a server reports, and bounds one message alone.
func TestPool_AStrangerSaysOneMiBInAllBeforeTheLogin(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]int{"small messages": 10, "long ones": 60_000} {
		for when, at := range map[string]tcptest.Moment{"before the password": tcptest.Greeting, "after it": tcptest.Login} {
			address, sent := tcptest.PostgresFlood(t, at, func(int) pgproto3.BackendMessage {
				return &pgproto3.ParameterStatus{Name: "p", Value: strings.Repeat("v", value)}
			})
			pool, err := pgxpool.NewWithConfig(t.Context(), daemon.PoolConfig(t, "postgres://u@"+address+"/d?sslmode=disable", 1))
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			require.ErrorContains(t, pool.Ping(t.Context()), "before the login", "%s, %s", name, when)
			require.Less(t, sent(), int64(1<<26), "%s, %s", name, when)
		}
	}
}
