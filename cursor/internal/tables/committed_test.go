package tables

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// A server answers the COMMIT of a transaction that has failed with ROLLBACK, and
// that is no error.
func TestCommitted_TakesNothingButACommit(t *testing.T) {
	t.Parallel()
	result := func(tag string, err error) *pgconn.Result {
		return &pgconn.Result{CommandTag: pgconn.NewCommandTag(tag), Err: err}
	}
	one, commit := result("SELECT 1", nil), result("COMMIT", nil)
	require.True(t, Committed([]*pgconn.Result{one, commit}, 1))
	require.True(t, Committed([]*pgconn.Result{one, commit, result("BEGIN", nil)}, 1))
	for name, results := range map[string][]*pgconn.Result{
		"nothing":        nil,
		"no commit":      {one},
		"rolled back":    {one, result("ROLLBACK", nil)},
		"commit failed":  {one, result("COMMIT", errors.New("x"))},
		"another answer": {one, result("", nil)},
	} {
		require.False(t, Committed(results, 1), name)
	}
}
