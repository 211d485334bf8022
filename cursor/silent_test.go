package cursor_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestWithTx_ASilentServerEndsTheLease: nothing else asks for a sign of life while the
// connection is the sink's, and the sink may wait for as long as it likes.
func TestWithTx_ASilentServerEndsTheLease(t *testing.T) {
	t.Parallel()
	created(t, database(t), "b")
	address, link := pgtest.Proxy(t, pgtest.URL(t))
	far, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { link.Cut(); far.Close() })
	s, err := cursor.NewStore(far, cursor.Config{Schema: schema, Worker: "a"})
	require.NoError(t, err)
	lease, err := s.AcquireTx(t.Context(), "sms", 0)
	require.NoError(t, err)
	t.Cleanup(lease.Release)
	_ = lease.WithTx(t.Context(), func(tx pgx.Tx) error {
		link.Stall()
		ctx, cancel := context.WithTimeout(lease.Context(), patience)
		defer cancel()
		_, err := tx.Exec(ctx, "SELECT 1")
		return err
	})
	require.ErrorIs(t, cause(lease), cursor.ErrLeaseLost)
	require.ErrorIs(t, cause(lease), answer.ErrSilent)
}
