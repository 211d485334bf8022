package daemon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const unqualifiedProcess = "  a: {source: {table: bookings}, sink: {stdout: {}}, poll: 20ms}\n"

// TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused: the search_path finds a new
// table before the one that was read. Neither a start, nor one more, nor a rename of the
// process, nor the retention of the audit accepts it; the schema in the file does.
func TestRun_ANameThatMeansAnotherTableAfterARestartIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE SCHEMA early")
	address := with(t, pgtest.URL(t), "search_path", "early,public")
	config := configure(t, address, unqualifiedProcess)
	insert(t, pool, 2)
	require.NoError(t, drain(t, config))

	exec(t, pool, "CREATE TABLE early.bookings (LIKE public.bookings INCLUDING ALL); INSERT INTO early.bookings (id, customer) OVERRIDING SYSTEM VALUE VALUES (1, 'forged')")
	const problem = "table bookings meant public.bookings when the process last ran, and is early.bookings now"
	insert(t, pool, 1)
	for range 2 {
		require.ErrorContains(t, drain(t, config), problem)
	}
	fix := "write source.table as public.bookings, or as early.bookings if it is meant"
	require.Equal(t, fix, requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Refuse, problem, fix}).Fix)

	exec(t, pool, "DELETE FROM od.cursor_event")
	require.ErrorContains(t, drain(t, config), problem)

	renamed := configure(t, address, strings.Replace(unqualifiedProcess, "a:", "b:", 1))
	_, err := daemon.Rename(t.Context(), renamed, "a", "b", cursor.Decision{Actor: "test", Reason: "another name"})
	require.NoError(t, err)
	require.ErrorContains(t, drain(t, renamed), problem)

	log := drainLog(t, configure(t, address, strings.NewReplacer("a:", "b:", "bookings", "public.bookings").Replace(unqualifiedProcess)))
	require.NotContains(t, log, "another configuration than before", "it means the same table")
	var delivered int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT sequence FROM od.cursor WHERE process_name = 'b'").Scan(&delivered))
	require.Equal(t, 3, delivered)
}

// A database in which every role may create in public is that of PostgreSQL 14 and
// older: the table there is found first, and no one can put one before it.
func TestRun_ANameWithoutASchemaInPublicWorks(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "GRANT CREATE ON SCHEMA public TO PUBLIC")
	insert(t, pool, 2)
	config := configure(t, pgtest.URL(t), unqualifiedProcess)
	for range 2 {
		require.NoError(t, drain(t, config))
	}
	for _, f := range doctor(t, config) {
		require.NotContains(t, f.Problem, "search_path")
	}
	exec(t, pool, "DROP TABLE public.bookings")
	exec(t, pool, "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE INDEX ON public.bookings (created_at, id)")
	require.NoError(t, drain(t, config), "made anew under its name")
}
