package daemon

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// MayBeInTheClear reports whether the doctor warns of a connection.
func MayBeInTheClear(t testing.TB, database string) bool {
	t.Helper()
	d := &doctor{pool: lazyPool(t, database)}
	d.transport()
	return len(d.findings) > 0
}

// PoolConfig is what a connection string becomes.
func PoolConfig(t testing.TB, database string, processes int) *pgxpool.Config {
	t.Helper()
	config, err := poolConfig(database, processes)
	require.NoError(t, err)
	return config
}

func lazyPool(t testing.TB, database string) *pgxpool.Pool {
	t.Helper()
	pool, err := openPool(t.Context(), PoolConfig(t, database, 1))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
