package cursor_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestFix_EndsNoOtherTransactionOfTheSession: between the look and the paste a session may have begun another transaction, which
// behind a pooler is that of another client. A role that does not see when it began was given SQL by the pid alone.
func TestFix_EndsNoOtherTransactionOfTheSession(t *testing.T) {
	t.Parallel()
	for name, grant := range map[string]string{"of which all is seen": "pg_read_all_stats", "of which the time is hidden": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			created(t, pool, "a")
			s := storeOf(t, pool, grant)
			conn := pgtest.Connect(t, pgtest.URL(t))
			lock := func() string {
				exec(t, conn, "BEGIN; SELECT FROM dispatch.cursor FOR UPDATE")
				lockers, err := s.Lockers(t.Context())
				require.NoError(t, err)
				require.Len(t, lockers, 1)
				require.Equal(t, grant == "", lockers[0].Since.IsZero())
				return lockers[0].Fix()
			}
			former := lock()
			exec(t, conn, "ROLLBACK")
			now := lock()
			exec(t, pool, former)
			require.NoError(t, conn.Ping(t.Context()))
			exec(t, pool, now)
			require.Error(t, conn.Ping(t.Context()))
		})
	}
}

// storeOf is that of a role which may read the cursors, and has what another role may.
func storeOf(t *testing.T, pool *pgxpool.Pool, granted string) *cursor.Store {
	t.Helper()
	role := pgtest.Role(t, pool, "od_", "")
	exec(t, pool, fmt.Sprintf("GRANT USAGE ON SCHEMA dispatch TO %[1]s; GRANT SELECT ON ALL TABLES IN SCHEMA dispatch TO %[1]s", role))
	if granted != "" {
		exec(t, pool, "GRANT "+granted+" TO "+role)
	}
	return store(t, pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "role", role), pgtest.PoolConfig{}), "asks")
}
