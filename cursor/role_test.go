package cursor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A sink call is longer than what many roles allow a transaction to be idle.
func TestLease_OutlivesTheTimeoutsOfItsRole(t *testing.T) {
	t.Parallel()
	created(t, database(t), "a")
	address := pgtest.With(t, pgtest.With(t, pgtest.URL(t), "idle_in_transaction_session_timeout", "200ms"), "lock_timeout", "200ms")

	lease := acquire(t, store(t, pgtest.Pool(t, address, pgtest.PoolConfig{}), "a"))
	select {
	case <-lease.Context().Done():
		t.Fatal("the lease ended: ", cause(lease))
	case <-time.After(time.Second): // several times what the role allows
	}
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}
