package daemon_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const (
	lateJanuary = "at.int:2026-01-25T00:00:00.000000Z/00000000000000000001" // after January's records
	midFebruary = "at.int:2026-02-10T00:00:00.000000Z/00000000000000000003"
	february    = "at.int:2026-02-20T00:00:00.000000Z/00000000000000000004" // the last record
	makeFeb     = "CREATE TABLE public.feb PARTITION OF public.events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');"
	attachFeb   = "ALTER TABLE public.events ATTACH PARTITION public.feb FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');"
	detachFeb   = "ALTER TABLE public.events DETACH PARTITION public.feb;"
)

// TestDoctor_APartitionThatComesBackWithoutItsRecordsIsNamed: the name or the table alone brings no record back.
func TestDoctor_APartitionThatComesBackWithoutItsRecordsIsNamed(t *testing.T) {
	t.Parallel()
	const twoRows = "INSERT INTO public.events (created_at) VALUES ('2026-02-11'), ('2026-02-12');"
	for name, c := range map[string]struct {
		goes, comes   string
		before, after daemon.Severity // the cursor has passed its place
		says          string
	}{
		"made anew, empty": {"DROP TABLE public.feb", makeFeb, daemon.Warn, daemon.Warn, "0 records of 2 records"},
		"made anew, with one record": {"DROP TABLE public.feb", makeFeb + "INSERT INTO public.events (created_at) VALUES ('2026-02-11')",
			daemon.Warn, daemon.Warn, "1 record of 2 records"},
		"made anew, with as many records": {"DROP TABLE public.feb", makeFeb + twoRows, daemon.Note, daemon.Note, "was made anew"},
		"another table has its name": {detachFeb, "ALTER TABLE public.feb RENAME TO old;" + makeFeb,
			daemon.Warn, daemon.Warn, "0 records of 2 records"},
		"attached again, emptied": {detachFeb, "TRUNCATE public.feb;" + attachFeb, daemon.Warn, daemon.Warn, "0 records of 2 records"},
		"attached again":          {detachFeb, attachFeb, "", daemon.Note, "is there again"},
		"attached again under another name, and its name is another's": {detachFeb,
			`ALTER TABLE public.feb RENAME TO z; ALTER TABLE public.events ATTACH PARTITION public.z FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
			CREATE TABLE public.feb PARTITION OF public.events FOR VALUES FROM ('2026-04-01') TO ('2026-05-01')`, "", daemon.Note, "is there again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagging(t, monthsProcess)
			g := guarding(t, config)
			exec(t, pool, c.goes)
			g.Look(t, "a")
			exec(t, pool, c.comes)
			g.Look(t, "a")
			for _, want := range []daemon.Severity{c.before, c.after} {
				if f := requireLeft(t, config, want, c.says); want != "" {
					require.Contains(t, f.Fix, "ordered-dispatcher seek a --to-position "+midJanuary)
				}
				require.NoError(t, drain(t, config), "the cursor passes the place")
			}
			seek(t, config, february)
			require.Empty(t, about(t, config), "settled")
		})
	}
}

func TestGuard_OnlyASeekPastTheRecordsSettlesThem(t *testing.T) {
	t.Parallel()
	const byID = "  a: {source: {table: public.events, order: id}, sink: {stdout: {}}, poll: 20ms}\n"
	const id = "int:0000000000000000000"
	const drop = "DROP TABLE public.feb"
	for name, c := range map[string]struct {
		to   []string
		sql  string
		want []string
		byID string // in the order of the ids, and SQL before the first look
	}{
		"before them, dropped":  {[]string{lateJanuary}, drop, []string{"a public.feb dropped 2 " + lateJanuary}, ""},
		"before them, detached": {[]string{lateJanuary}, detachFeb, []string{"a public.feb detached 2 " + lateJanuary}, ""},
		"among them, dropped":   {[]string{midFebruary}, drop, []string{"a public.feb dropped 2 " + midFebruary}, ""},
		"among them, detached":  {[]string{midFebruary}, detachFeb, []string{"a public.feb detached 1 " + midFebruary}, ""},
		"back":                  {[]string{""}, drop, []string{"a public.feb dropped 2 " + midJanuary}, ""},
		"past them and back":    {[]string{february, midJanuary}, drop, []string{"a public.feb dropped 2 " + midJanuary}, ""},
		"past them, dropped":    {[]string{february}, drop, []string{}, ""},
		"past them, detached":   {[]string{february}, detachFeb, []string{}, ""},
		"before and then past":  {[]string{lateJanuary, february}, drop, []string{}, ""},
		"among them, and empty": {[]string{midFebruary}, detachFeb + "TRUNCATE public.feb", []string{"a public.feb detached 2 " + midFebruary}, ""},
		"its name is another's": {[]string{midFebruary}, detachFeb + "ALTER TABLE public.feb RENAME TO old; CREATE TABLE public.feb (LIKE public.old INCLUDING DEFAULTS); INSERT INTO public.feb (id, created_at) VALUES (7, '2026-01-11'), (8, '2026-01-12')", []string{"a public.feb detached 2 " + midFebruary}, ""},
		"past those of January": {[]string{lateJanuary}, "ALTER TABLE public.events DETACH PARTITION public.jan", []string{}, ""},
		"by id, among them":     {[]string{id + "3"}, drop, []string{"a public.feb dropped 2 " + id + "3"}, "SELECT"},
		"by id, past them":      {[]string{id + "4"}, drop, []string{}, "SELECT"},
		"by id, one of no sequence": {[]string{id + "4"}, drop, []string{"a public.feb dropped 3 " + id + "4"},
			"INSERT INTO public.events (id, created_at) VALUES (9, '2026-02-25')"},
		"past them, not the end": {[]string{february}, "INSERT INTO public.events (created_at) VALUES ('2026-05-05');" + drop, []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := monthsProcess
			if c.byID != "" {
				process = byID
			}
			pool, config := lagging(t, process)
			if c.byID != "" {
				exec(t, pool, c.byID)
				place(t, pool, "a", id+"1", "running")
			}
			g := guarding(t, config)
			for _, to := range c.to {
				seek(t, config, to)
			}
			exec(t, pool, c.sql)
			g.Look(t, "a")
			require.Equal(t, c.want, noted(t, pool))
			require.Len(t, about(t, config), len(c.want))
		})
	}
}

// TestGuard_ACursorThatIsGivenUpNeedsNoPartition: it is made anew before the next look, and the name has another cursor.
func TestGuard_ACursorThatIsGivenUpNeedsNoPartition(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	g := guarding(t, config)
	_, err := daemon.Forget(t.Context(), config, "a", cursor.Decision{Actor: "alice", Reason: "given up"})
	require.NoError(t, err)
	exec(t, pool, "DROP TABLE public.feb")
	require.NoError(t, drain(t, config))
	g.Look(t, "a")
	require.Empty(t, noted(t, pool))
}

func TestGuard_NotesASecondDetach(t *testing.T) {
	t.Parallel()
	noLook := func(*testing.T, daemon.Guard, daemon.Guard) {}
	for name, c := range map[string]struct {
		between func(t *testing.T, pool *pgxpool.Pool, config daemon.Config)
		looks   func(t *testing.T, g, other daemon.Guard) // before the second one
		second  string
		want    int
	}{
		"of the worker that has seen the first": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			exec(t, pool, attachFeb)
			seek(t, config, midJanuary)
		}, func(t *testing.T, g, _ daemon.Guard) { g.Look(t, "a") }, detachFeb, 2},
		"without a seek": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) { exec(t, pool, attachFeb) },
			func(t *testing.T, g, _ daemon.Guard) { g.Look(t, "a") }, detachFeb, 2},
		"both have seen it attached again": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) { exec(t, pool, attachFeb) },
			func(t *testing.T, g, other daemon.Guard) { g.Look(t, "a"); other.Look(t, "a") }, "DROP TABLE public.feb", 2},
		"of a worker that has seen neither attached again": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			exec(t, pool, attachFeb)
			seek(t, config, midJanuary)
		}, noLook, detachFeb, 2},
		"of a worker that has seen neither, sought to the start": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			exec(t, pool, attachFeb)
			seek(t, config, "")
		}, noLook, detachFeb, 2},
		"none, and the first is settled": {func(t *testing.T, _ *pgxpool.Pool, config daemon.Config) { seek(t, config, midFebruary) },
			noLook, "SELECT", 1},
		"none, and nothing was decided": {func(*testing.T, *pgxpool.Pool, daemon.Config) {}, noLook, "SELECT", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagging(t, monthsProcess)
			g, other := guarding(t, config), guarding(t, config)
			exec(t, pool, detachFeb)
			g.Look(t, "a")
			require.Len(t, noted(t, pool), 1)
			c.between(t, pool, config)
			c.looks(t, g, other)
			exec(t, pool, c.second)
			g.Look(t, "a")
			other.Look(t, "a")
			require.Len(t, noted(t, pool), c.want)
		})
	}
}

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

	const lacks = "which identifies its partitions"
	require.NotContains(t, problems(doctor(t, config)), lacks)
	require.Equal(t, map[string]string{"app.eu": "a has not delivered 1 record of it", "app.us": "a has not delivered 1 record of it"}, partitions(t, config))
	g := guarding(t, config)
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
