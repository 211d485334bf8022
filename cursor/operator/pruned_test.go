package operator_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A pass asks again after it has a lock. With one snapshot for all of a transaction it would not see what was committed
// while it waited: a seek, or a row of a partition.
func TestPrune_SeesWhatWasCommittedSinceItBeganWhateverTheDefaultIsolation(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	strict := pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "default_transaction_isolation", "repeatable read"), pgtest.PoolConfig{})
	require.Equal(t, "repeatable read", pgtest.Value[string](t, strict, "SHOW transaction_isolation"))
	err := operator.New(store(t, strict, "w")).Prune(t.Context(), "public.bookings", func(ctx context.Context, tx pgx.Tx, _ []operator.Standing) (none operator.Removal, err error) {
		exec(t, pool, "UPDATE dispatch.cursor SET position = '~'")
		var at string
		require.NoError(t, tx.QueryRow(ctx, "SELECT position FROM dispatch.cursor").Scan(&at))
		require.Equal(t, "~", at)
		return none, nil
	})
	require.NoError(t, err)
}
