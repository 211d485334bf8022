package daemon_test

import (
	"cmp"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const (
	firstBooking = "at.int:2026-01-10T00:00:00.000000Z/00000000000000000001"
	lastBooking  = "at.int:2026-01-12T00:00:00.000000Z/00000000000000000003"
	threeRows    = `INSERT INTO public.bookings (created_at) VALUES ('2026-01-10'), ('2026-01-11'), ('2026-01-12');`
	newTable     = `CREATE TABLE public.bookings (LIKE public.old INCLUDING ALL);`
	swap         = `ALTER TABLE public.bookings RENAME TO old;` + newTable
	nextRows     = `INSERT INTO public.bookings (customer) SELECT 'after the swap' FROM generate_series(1, 5);`
	swapBack     = `ALTER TABLE public.bookings RENAME TO new; ALTER TABLE public.old RENAME TO bookings;`
)

// lagsInATable is process a on a plain table, with two of three records undelivered.
func lagsInATable(t testing.TB, process string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool, config := fixture(t, process)
	exec(t, pool, threeRows)
	require.NoError(t, drain(t, config))
	place(t, pool, "a", firstBooking, "paused")
	return pool, config
}

func TestGuard_NotesATableThatIsReplacedWithUndeliveredRecords(t *testing.T) {
	t.Parallel()
	const byID = "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}, poll: 20ms}\n"
	const moved = `CREATE SCHEMA "My"; ALTER TABLE public.bookings SET SCHEMA "My"; CREATE TABLE public.bookings (LIKE "My".bookings INCLUDING ALL)`
	for name, c := range map[string]struct {
		process, at, state, before, sql string
		fate, says, fix                 string
	}{
		"renamed":                   {sql: swap, fate: "replaced", says: "is public.old now", fix: "the rows of public.old"},
		"renamed while it runs":     {sql: swap, state: "running", fate: "replaced", says: "is public.old now", fix: "the rows of public.old"},
		"renamed while it halted":   {sql: swap, state: "halted", fate: "replaced", says: "is public.old now", fix: "the rows of public.old"},
		"by id":                     {process: byID, at: "int:00000000000000000001", sql: swap, fate: "replaced", says: "is public.old now", fix: "the rows of public.old"},
		"the new one has records":   {sql: swap + nextRows, fate: "replaced", says: "is public.old now", fix: "the rows of public.old"},
		"moved to another schema":   {sql: moved, fate: "replaced", says: `is "My".bookings now`, fix: `the rows of "My".bookings`},
		"others inherited from it":  {before: `CREATE TABLE public.special () INHERITS (public.bookings); CREATE INDEX ON public.special (created_at, id)`, sql: swap, fate: "replaced", says: "is public.old now", fix: "the rows of public.old"},
		"dropped":                   {before: "CREATE TABLE public.old (LIKE public.bookings INCLUDING ALL)", sql: "DROP TABLE public.bookings;" + newTable, fate: "dropped", fix: "put its records back from a backup"},
		"renamed and dropped later": {sql: swap + "DROP TABLE public.old", fate: "dropped", fix: "put its records back from a backup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagsInATable(t, cmp.Or(c.process, stdoutProcess))
			exec(t, pool, c.before)
			at := cmp.Or(c.at, firstBooking)
			place(t, pool, "a", at, cmp.Or(c.state, "paused"))
			requireNotedOnce(t, pool, config, at, c.sql, "a public.bookings "+c.fate+" 2 "+at)
			exec(t, pool, nextRows)
			require.NoError(t, drain(t, config), "the cursor passes the place")
			findings := about(t, config)
			require.Len(t, findings, 1)
			require.Equal(t, daemon.Warn, findings[0].Severity)
			require.Contains(t, findings[0].Problem, "public.bookings was "+c.fate)
			require.Contains(t, findings[0].Problem, c.says)
			require.Contains(t, findings[0].Fix, c.fix)
			require.Contains(t, findings[0].Fix, "ordered-dispatcher seek a --to-position "+at)
			require.NotContains(t, strings.ToUpper(findings[0].Problem+findings[0].Fix), "TACH")
		})
	}
}

// TestGuard_NotesATableThatWasNotThereAtALook: it was renamed, and the new one is made later.
func TestGuard_NotesATableThatWasNotThereAtALook(t *testing.T) {
	t.Parallel()
	pool, config := lagsInATable(t, stdoutProcess)
	g := guarding(t, config)
	exec(t, pool, "ALTER TABLE public.bookings RENAME TO old")
	require.ErrorContains(t, g.Ask(t, "a"), "no such table")
	require.ErrorContains(t, g.Ask(t, "a"), "public.bookings does not exist")
	require.Empty(t, noted(t, pool))
	exec(t, pool, newTable)
	g.Look(t, "a")
	require.Equal(t, []string{"a public.bookings replaced 2 " + firstBooking}, noted(t, pool))
}

// TestGuard_NotesATableThatIsReplacedDuringALook: it is listed, and another one has its name when its records are asked for.
func TestGuard_NotesATableThatIsReplacedDuringALook(t *testing.T) {
	t.Parallel()
	pool, config := lagsInATable(t, stdoutProcess)
	g := guarding(t, config)
	duringALook(t, pool, g, swap)
	require.Equal(t, []string{"a public.bookings replaced 2 " + firstBooking}, noted(t, pool))
}

func TestGuard_NotesNoTableThatNoProcessNeeds(t *testing.T) {
	t.Parallel()
	sql := func(sql string) func(*testing.T, *pgxpool.Pool, daemon.Config, daemon.Guard) {
		return func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config, _ daemon.Guard) { exec(t, pool, sql) }
	}
	for name, happens := range map[string]func(*testing.T, *pgxpool.Pool, daemon.Config, daemon.Guard){
		"it caught up, and there was a look since": func(t *testing.T, pool *pgxpool.Pool, config daemon.Config, g daemon.Guard) {
			place(t, pool, "a", firstBooking, "running")
			require.NoError(t, drain(t, config))
			g.Look(t, "a")
			exec(t, pool, swap+nextRows)
		},
		"sought past by an operator": func(t *testing.T, pool *pgxpool.Pool, config daemon.Config, _ daemon.Guard) {
			seek(t, config, lastBooking)
			exec(t, pool, swap)
		},
		"renamed and back": sql(swap + swapBack),
		"rewritten":        sql("VACUUM FULL public.bookings"),
		"the former one is a partition of the new one": sql(`
			ALTER TABLE public.bookings ALTER id DROP IDENTITY, DROP CONSTRAINT bookings_pkey; ALTER TABLE public.bookings RENAME TO old;
			CREATE TABLE public.bookings (LIKE public.old INCLUDING DEFAULTS) PARTITION BY RANGE (created_at);
			CREATE UNIQUE INDEX ON public.bookings (created_at, id);
			ALTER TABLE public.bookings ATTACH PARTITION public.old DEFAULT`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagsInATable(t, stdoutProcess)
			g := guarding(t, config)
			happens(t, pool, config, g)
			g.Look(t, "a")
			require.Empty(t, noted(t, pool))
			require.Empty(t, about(t, config))
		})
	}
}

// TestGuard_APartitionedTableHasNoRecordsOfItsOwn: its partitions are moved to the new one, so nothing is missing.
func TestGuard_APartitionedTableHasNoRecordsOfItsOwn(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	g := guarding(t, config)
	exec(t, pool, `ALTER TABLE public.events RENAME TO old; ALTER TABLE public.old DETACH PARTITION public.jan; ALTER TABLE public.old DETACH PARTITION public.feb;
		CREATE TABLE public.events (LIKE public.old INCLUDING ALL) PARTITION BY RANGE (created_at);
		ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');`+attachFeb)
	g.Look(t, "a")
	require.Empty(t, noted(t, pool))
}

func TestDoctor_NamesATableThatWasReplacedUntilItIsSettled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settle func(t *testing.T, pool *pgxpool.Pool, config daemon.Config)
		left   daemon.Severity
		says   string
	}{
		"the new one has as many records": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) { exec(t, pool, nextRows) }, daemon.Warn, "public.bookings was replaced"},
		"its rows were inserted, and it was not sought back": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) {
			exec(t, pool, "INSERT INTO public.bookings OVERRIDING SYSTEM VALUE SELECT * FROM public.old ORDER BY created_at, id")
		}, daemon.Warn, "public.bookings was replaced"},
		"its rows were inserted, and it was sought back": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			exec(t, pool, "INSERT INTO public.bookings OVERRIDING SYSTEM VALUE SELECT * FROM public.old ORDER BY created_at, id")
			seek(t, config, firstBooking)
		}, "", ""},
		"an operator seeks to where the cursor is": {func(t *testing.T, _ *pgxpool.Pool, config daemon.Config) { seek(t, config, lastBooking) }, "", ""},
		"renamed back before the cursor":           {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) { exec(t, pool, swapBack) }, "", ""},
		"renamed back after the cursor": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) {
			exec(t, pool, swapBack)
			place(t, pool, "a", lastBooking, "running")
		}, daemon.Note, "public.bookings was replaced for a while"},
		"renamed back without its records": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) {
			exec(t, pool, "TRUNCATE public.old;"+swapBack)
		}, daemon.Warn, "is there again with 0 records of 2 records"},
		"dropped since": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) { exec(t, pool, "DROP TABLE public.old") }, daemon.Warn, "public.bookings was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagsInATable(t, stdoutProcess)
			g := guarding(t, config)
			exec(t, pool, swap)
			g.Look(t, "a")
			c.settle(t, pool, config)
			f := requireLeft(t, config, c.left, c.says)
			require.NotContains(t, strings.ToUpper(f.Problem+f.Fix), "TACH")
		})
	}
}

// TestRun_ATableThatIsReplacedWhileAWorkerFailsIsNamed: the cursor goes on through the new table.
func TestRun_ATableThatIsReplacedWhileAWorkerFailsIsNamed(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, threeRows)
	var open atomic.Bool
	m := monitor(t, configure(t, pgtest.URL(t), webhookTo(t, func(w http.ResponseWriter, _ *http.Request) {
		if !open.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})))
	require.Eventually(t, func() bool { return strings.Contains(m.log.String(), "partitions hold records that are not delivered") }, patience, time.Millisecond)
	exec(t, pool, swap+nextRows)
	require.Eventually(t, func() bool { return len(noted(t, pool)) == 1 }, patience, time.Millisecond)
	open.Store(true)
	m.until("lag_records", is(0))
	require.Equal(t, []string{"a public.bookings replaced 3 "}, noted(t, pool))
	require.Contains(t, m.log.String(), `"fate":"replaced"`)
}
