package daemon

import (
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
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

// ProcessorConfig is what of a process goes to the processor, and CallTimeout how
// long a call of its sink may take there.
func ProcessorConfig(p Process, grace time.Duration) processor.Config {
	return p.processorConfig(dependencies{grace: grace})
}

// CallTimeout is how long a call of the process's sink may take.
func CallTimeout(t testing.TB, p Process) time.Duration {
	t.Helper()
	_, timeout, err := p.dispatch(dependencies{stdout: io.Discard})
	require.NoError(t, err)
	return timeout
}
