package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestPrune_ShowsWhatWentAndWhoHoldsRowsBack(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	execute(t, pool, "UPDATE public.bookings SET created_at = timestamptz '2026-01-01 00:00Z' + id * interval '1 minute'")
	path := processes(t, map[string]string{"a": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "--drain", "-c", path)
	require.Zero(t, code, stderr)
	code, _, stderr = do(t, address, "prune", "-c", path)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the file has no rule of retention: add one, as in `retention: {public.bookings: {keep: 168h}}`")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	bare := path // without a rule: a run has time for a pass, or has not
	path = file(t, string(text)+"retention: {public.bookings: {keep: 1h}}\n")
	code, stdout, stderr := do(t, address, "prune", "-c", path, "--dry-run")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "public.bookings (delete): 3 rows would be removed in 1 transaction, up to at.int:2026-01-01T00:03:00.000000Z/00000000000000000003\n")

	execute(t, pool, "UPDATE public.cursor SET position = 'at.int:2026-01-01T00:01:00.000000Z/00000000000000000001', state = 'paused'")
	require.Eventually(t, func() bool { // the sessions of the worker end
		return pgtest.Value[int](t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% run/%'") == 0
	}, time.Minute, 5*time.Millisecond)
	code, stdout, stderr = do(t, address, "prune", "-c", path, "public.bookings")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "public.bookings (delete): 1 row removed in 1 transaction, up to at.int:2026-01-01T00:01:00.000000Z/00000000000000000001\n"+
		"  a (paused) has not passed row 2 of 2026-01-01T00:02:00Z: ordered-dispatcher resume a; if nobody runs it any more: ordered-dispatcher process forget a --reason …")
	require.Contains(t, stderr, "retention of public.bookings with keep 1h0m0s would pass the cursor of a, so it stopped there")

	code, _, stderr = do(t, address, "seek", "a", "-c", path, "--to-start", "--reason", "again")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "were removed (retention, mode delete), so this replay would lack them")
	code, _, stderr = do(t, address, "seek", "a", "-c", path, "--to-id", "1", "--reason", "again")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, `no such record with id "1"; perhaps it was removed: records of public.bookings up to position `)
	code, _, stderr = do(t, address, "seek", "a", "-c", path, "--to-start", "--reason", "again", "--pruned")
	require.Zero(t, code, stderr)

	code, stdout, stderr = do(t, address, "erase", "public.bookings", "-c", path, "--key", "3", "--by", "id", "--reason", "request 7", "--dry-run")
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stderr, "process a has yet to deliver row 3 of that key. Nothing was erased")
	code, _, stderr = do(t, address, "run", "--drain", "-c", bare)
	require.Equal(t, 1, code, stderr) // it is paused
	execute(t, pool, "UPDATE public.cursor SET state = 'running'")
	code, _, stderr = do(t, address, "run", "--drain", "-c", bare)
	require.Zero(t, code, stderr)
	insert(t, pool, 1)
	code, _, stderr = do(t, address, "run", "--drain", "-c", bare)
	require.Zero(t, code, stderr)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("4\n"), 0o600))
	code, stdout, stderr = do(t, address, "erase", "public.bookings", "-c", path, "--key-file", key, "--by", "id", "--reason", "request 7")
	require.Zero(t, code, stderr)
	require.Equal(t, "public.bookings: 1 row erased, 0 rows in the archive table, 0 dead letters; noted in the history of a\n", stdout)
	stdout = must(t, address, "erase", "public.bookings", "-c", path, "--key", "2", "--by", "id", "--blank", "customer", "--reason", "request 9", "--dry-run")
	require.Contains(t, stdout, "1 row would be emptied in customer, ")
	code, stdout, stderr = do(t, address, "erase", "public.bookings", "-c", path, "--key", "404", "--by", "id", "--reason", "request 8")
	require.Zero(t, code, stderr)
	require.Equal(t, "public.bookings: no row and no dead letter has this key, so nothing was erased or noted\n", stdout)
	code, stdout, stderr = do(t, address, "history", "a")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "request 7")
}

// The owner of a table drops its partitions by a file of its own, without the secrets of the real sink. Its login has no
// other right to the cursor tables than those that the page names.
func TestPrune_TheOwnersFileOfThePageDropsPartitions(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/retention.md")
	require.NoError(t, err)
	address, pool := pgtest.URL(t), pgtest.Database(t)
	must(t, address, "migrate", "up")
	owner := pgtest.Role(t, pool, "app_owner_", "LOGIN PASSWORD 'of-the-owner'")
	execute(t, pool, `
		CREATE TABLE public.events (
			id bigint GENERATED ALWAYS AS IDENTITY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			PRIMARY KEY (created_at, id)
		) PARTITION BY RANGE (created_at);
		CREATE TABLE public.empty PARTITION OF public.events FOR VALUES FROM ('2026-01-01Z') TO ('2026-02-01Z');
		CREATE TABLE public.old PARTITION OF public.events FOR VALUES FROM ('2026-02-01Z') TO ('2026-03-01Z');
		CREATE TABLE public.rest PARTITION OF public.events FOR VALUES FROM ('2026-03-01Z') TO (MAXVALUE);
		INSERT INTO public.events (created_at) VALUES ('2026-02-02Z'), (DEFAULT);`)
	for _, name := range []string{"events", "empty", "old", "rest"} {
		execute(t, pool, "ALTER TABLE public."+name+" OWNER TO "+owner)
	}
	must(t, address, "run", "--drain", "-c", file(t, "processes: {audit: {source: {table: public.events}, sink: {stdout: {}}, start: beginning}}"))

	path := file(t, blockWith(t, string(page), "yaml", "mode: drop"))
	_, rights, found := strings.Cut(must(t, address, "grants", "-c", path, "--role", owner), "\n-- For retention")
	require.True(t, found)
	for line := range strings.Lines(rights) {
		if strings.HasPrefix(line, "GRANT") {
			execute(t, pool, line)
		}
	}
	stdout := must(t, pgtest.As(t, address, owner, "of-the-owner"), "prune", "-c", path)
	require.Equal(t, "public.events (drop): 1 partition removed: public.old\n", stdout)
	require.Equal(t, "empty, rest", text(t, pool, "SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'public.events'::regclass"))
}
