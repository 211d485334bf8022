package cursor_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A sink call is longer than what many roles allow a transaction to be idle.
func TestLease_OutlivesTheTimeoutsOfItsRole(t *testing.T) {
	t.Parallel()
	created(t, database(t), "a")
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "200ms"
	config.ConnConfig.RuntimeParams["lock_timeout"] = "200ms"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "a"})
	require.NoError(t, err)

	lease := acquire(t, s)
	select {
	case <-lease.Context().Done():
		t.Fatal("the lease ended: ", cause(lease))
	case <-time.After(time.Second): // several times what the role allows
	}
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}
