package cursor

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// A server answers the COMMIT of a transaction that has failed with ROLLBACK, and
// that is no error.
func TestCommitted_TakesNothingButACommitOfOneRow(t *testing.T) {
	t.Parallel()
	result := func(tag string, err error) *pgconn.Result {
		return &pgconn.Result{CommandTag: pgconn.NewCommandTag(tag), Err: err}
	}
	one, commit := result("UPDATE 1", nil), result("COMMIT", nil)
	require.True(t, committed([]*pgconn.Result{one, commit}))
	require.True(t, committed([]*pgconn.Result{one, commit, result("BEGIN", nil)}))
	for name, results := range map[string][]*pgconn.Result{
		"nothing":        nil,
		"no commit":      {one},
		"no row":         {result("UPDATE 0", nil), commit},
		"several rows":   {result("UPDATE 2", nil), commit},
		"rolled back":    {one, result("ROLLBACK", nil)},
		"update failed":  {result("UPDATE 1", errors.New("x")), commit},
		"commit failed":  {one, result("COMMIT", errors.New("x"))},
		"another answer": {one, result("", nil)},
	} {
		require.False(t, committed(results), name)
	}
}
