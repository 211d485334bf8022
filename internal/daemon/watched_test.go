package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestGrants_TheWatchOfPartitionsRunsUnderThem: the partition key is a column that no process reads. Without the right to it
// the worker delivers everything, but it would not notice a partition that goes too early.
func TestGrants_TheWatchOfPartitionsRunsUnderThem(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	exec(t, pool, `
		CREATE TABLE app.regions (id bigint NOT NULL DEFAULT 1, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region text NOT NULL, payload jsonb NOT NULL DEFAULT '{}',
			PRIMARY KEY (created_at, id, region)) PARTITION BY LIST (region);
		CREATE UNIQUE INDEX ON app.regions (region, created_at, id);
		CREATE TABLE app.eu PARTITION OF app.regions FOR VALUES IN ('eu');
		CREATE TABLE app.us PARTITION OF app.regions FOR VALUES IN ('us');
		INSERT INTO app.regions (id, region) VALUES (1, 'eu'), (2, 'us')`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: app.regions, columns: {payload: payload}}, sink: {stdout: {}}, start: beginning, poll: 20ms}\n")
	name, address := stranger(t, pool)
	exec(t, pool, grants(t, config, name))
	config.Database = address
	require.NoError(t, drain(t, config))
	place(t, pool, "a", "", "running")

	const lacks = "by which its partitions are told apart"
	for _, f := range doctor(t, config) {
		require.NotContains(t, f.Problem, lacks)
	}
	require.Equal(t, map[string]string{"app.eu": "a has not delivered 1 record of it", "app.us": "a has not delivered 1 record of it"}, partitions(t, config))
	g := daemon.NewGuard(t, config)
	g.Look(t, "a")
	exec(t, pool, "DROP TABLE app.eu")
	g.Look(t, "a")
	require.Equal(t, []string{"a app.eu dropped 1 "}, noted(t, pool))

	exec(t, pool, `REVOKE SELECT (region) ON app.regions FROM "`+name+`"`)
	fix := `GRANT SELECT (region) ON "app"."regions" TO "` + name + `"`
	found := requireFinding(t, doctor(t, config), daemon.Finding{Process: "a", Severity: daemon.Warn, Problem: lacks})
	require.Equal(t, fix, found.Fix)
	require.Contains(t, partitions(t, config)["app.us"], fix)
	require.ErrorContains(t, g.Ask(t, "a"), fix, "the worker's warning names it")
}
