package cursor_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestFix_EndsNoOtherTransactionOfTheSession: between the look and the paste a session may have begun another transaction, which
// behind a pooler is that of another client.
func TestFix_EndsNoOtherTransactionOfTheSession(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	lock := func() string {
		_, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM dispatch.cursor FOR UPDATE")
		require.NoError(t, err)
		lockers, err := s.Lockers(t.Context())
		require.NoError(t, err)
		require.Len(t, lockers, 1)
		return lockers[0].Fix()
	}
	former := lock()
	_, err = conn.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	now := lock()
	_, err = pool.Exec(t.Context(), former)
	require.NoError(t, err)
	require.NoError(t, conn.Ping(t.Context()))
	_, err = pool.Exec(t.Context(), now)
	require.NoError(t, err)
	require.Error(t, conn.Ping(t.Context()))
}
