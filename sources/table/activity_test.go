package table

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A session that sends this database's changes to a subscriber is at work for ever,
// and inserts nothing.
func TestActivity_AWalSenderThatReplicatesHoldsNothingUp(t *testing.T) {
	t.Parallel()
	pool := database(t, "")
	for query, want := range map[string]bool{
		`START_REPLICATION SLOT "a" LOGICAL 0/0`:     true,
		"\n start_replication slot a logical 0/0":    true,
		`INSERT INTO t VALUES ('START_REPLICATION')`: false,
	} {
		require.Equal(t, want, harmlessSession(t, pool, "walsender", query), query)
		require.False(t, harmlessSession(t, pool, "client backend", query), query)
	}
}

// harmlessSession asks the condition about a session that only the test knows.
func harmlessSession(t testing.TB, pool *pgxpool.Pool, backend, query string) bool {
	t.Helper()
	return pgtest.Value[bool](t, pool, `WITH session AS (
			SELECT pid, datid, 0::oid AS usesysid, $1::text AS backend_type, $2::text AS query, '' AS application_name
			FROM pg_stat_activity WHERE pid = pg_backend_pid()
		)
		SELECT `+harmless+` FROM session`, backend, query)
}

// The times of a session that only the test knows: its transaction began at 5, its
// message came at 3, its state is of 4, and its connection of 1.
func TestActivity_BoundsASessionByTheMessageThatItIsAt(t *testing.T) {
	t.Parallel()
	pool := database(t, "")
	for _, c := range []struct {
		backend, state string
		in             bool // a transaction
		want           string
	}{
		{"client backend", "active", false, "3"},
		{"client backend", "active", true, "3"},
		{"client backend", "idle in transaction", true, "3"},
		{"client backend", "fastpath function call", false, "3"},
		{"client backend", "idle", false, "4"},
		{"walsender", "active", false, "3"},
		{"walsender", "idle", false, "4"},
		{"background worker", "active", false, "3"},
		{"background worker", "idle", false, ""},
		{"background worker", "", false, ""},
		{"background worker", "idle", true, "5"},
		{"logical replication apply worker", "idle", false, ""},
		{"parallel worker", "active", true, "3"},
	} {
		got := pgtest.Value[string](t, pool, `WITH session AS (
				SELECT $1::text AS backend_type, nullif($2::text, '') AS state, CASE WHEN $3 THEN to_timestamp(5) END AS xact_start,
					to_timestamp(3) AS query_start, to_timestamp(4) AS state_change, to_timestamp(1) AS backend_start
			)
			SELECT coalesce(extract(epoch FROM `+earliest+`)::int::text, '') FROM session`, c.backend, c.state, c.in)
		require.Equal(t, c.want, got, "%+v", c)
	}
}

// A session that took a message and does not show it yet is idle, and does not wait.
func TestActivity_AnIdleSessionIsAWriterUnlessItWaitedForItsClient(t *testing.T) {
	t.Parallel()
	session := func(pid int, idle string, since string) [][]byte {
		return [][]byte{[]byte(strconv.Itoa(pid)), []byte("f"), nil, []byte(idle), []byte(since)}
	}
	writers, err := startedWriters("7 8", [][][]byte{session(7, "t", "70"), session(8, "f", "80"), session(9, "t", "90")}, nil)
	require.NoError(t, err)
	require.Equal(t, []writer{{id: "session 8", since: 80, dated: true}, {id: "session 9", since: 90, dated: true}}, writers)
}
