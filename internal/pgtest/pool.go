package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PoolConfig describes how a pool's sessions differ from PostgreSQL's defaults.
type PoolConfig struct {
	// SearchPath of the sessions. Default: empty, so that names without a schema are not found.
	SearchPath string

	// MaxConns bounds the pool. Default: 8.
	MaxConns int32

	// ApplicationName is the name in pg_stat_activity. Default: the test's name.
	ApplicationName string
}

// Database returns a pool on the test's own database (see URL), closed when the test ends. Each call opens another
// pool.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, URL(t), PoolConfig{})
}

// Pool opens a pool on any database and closes it when the test ends. If the test has not released a connection by
// then, that is an error of the test.
func Pool(t testing.TB, address string, config PoolConfig) *pgxpool.Pool {
	t.Helper()
	parsed, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatalf("open a pool: %v", err)
	}
	parsed.MaxConns = 8
	if config.MaxConns > 0 {
		parsed.MaxConns = config.MaxConns
	}
	params := parsed.ConnConfig.RuntimeParams
	params["search_path"] = config.SearchPath
	params["application_name"] = config.ApplicationName
	if config.ApplicationName == "" {
		params["application_name"] = t.Name()
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, parsed)
	if err != nil {
		t.Fatalf("open a pool: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool bounds the wait for connections that are never released. pool.Close would wait for ever.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Errorf("close a pool: %d connections are still in use; release them before the test ends", pool.Stat().AcquiredConns())
	}
}
