package cursor_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
			conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			lock := func() string {
				_, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM dispatch.cursor FOR UPDATE")
				require.NoError(t, err)
				lockers, err := s.Lockers(t.Context())
				require.NoError(t, err)
				require.Len(t, lockers, 1)
				require.Equal(t, grant == "", lockers[0].Since.IsZero())
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
		})
	}
}

// storeOf is that of a role which may read the cursors, and has what another role may.
func storeOf(t *testing.T, pool *pgxpool.Pool, granted string) *cursor.Store {
	t.Helper()
	role := "od_" + strings.ToLower(rand.Text())
	sql := fmt.Sprintf("CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA dispatch TO %[1]s; GRANT SELECT ON ALL TABLES IN SCHEMA dispatch TO %[1]s", role)
	if granted != "" {
		sql += "; GRANT " + granted + " TO " + role
	}
	_, err := pool.Exec(t.Context(), sql)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		require.NoError(t, err)
	})
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["role"] = role
	own, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(own.Close)
	s, err := cursor.NewStore(own, cursor.Config{Schema: schema, Worker: "asks"})
	require.NoError(t, err)
	return s
}
