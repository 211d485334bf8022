package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// claiming is a database with an outbox of large payloads, the process that reads it, and their directory.
func claiming(t testing.TB, also string) (*pgxpool.Pool, daemon.Config, string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, claim.Dir(dir).Create())
	pool := database(t)
	box, err := outbox.New(outbox.Config{ClaimAbove: 1, Claims: claim.Dir(dir)})
	require.NoError(t, err)
	exec(t, pool, box.SQL())
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, claims: "+dir+", poll: 20ms}\n"+also)
	return pool, config, dir
}

// claimed puts a payload, long ago, to which the rows of a statement may refer. $1 is the name, $2 the reference.
func claimed(t testing.TB, pool *pgxpool.Pool, dir, payload, sql string) claim.Reference {
	t.Helper()
	r, err := claim.Put(t.Context(), claim.Dir(dir), []byte(payload))
	require.NoError(t, err)
	past := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, r.Object[:2], r.Object), past, past))
	if sql != "" {
		_, err = pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol, r.Object, string(r.JSON()))
		require.NoError(t, err)
	}
	return r
}

const claimRow = `INSERT INTO public.outbox (type, headers, payload) VALUES ('a', jsonb_build_object('claim-check', $1::text), $2::jsonb)`

func collectClaims(t testing.TB, config daemon.Config, c daemon.Collection) claim.Removed {
	t.Helper()
	if c.OlderThan == 0 {
		c.OlderThan = 24 * time.Hour
	}
	if c.Fate == nil {
		c.Fate = daemon.DeleteObject
	}
	all, err := daemon.CollectClaims(t.Context(), config, c)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].Removed
}

func requireObject(t testing.TB, dir string, r claim.Reference) {
	t.Helper()
	_, err := r.Resolve(t.Context(), claim.Dir(dir), 1000)
	require.NoError(t, err)
}

func TestCollectClaims_RemovesOldObjectsToWhichNoRowRefers(t *testing.T) {
	t.Parallel()
	pool, config, dir := claiming(t, "")
	exec(t, pool, `CREATE TABLE public.kept (LIKE public.outbox)`)
	config.Rules = []daemon.TableRule{{Table: "public.outbox"}}
	config.Rules[0].Archive = "public.kept"
	var needed []claim.Reference
	for name, sql := range map[string]string{
		"row":         claimRow,
		"dead letter": `INSERT INTO od.dead_letter (process_name, position, sequence, table_name, record_id, headers, payload, attempts, first_failed_at, error, class) VALUES ('a', 'x', 1, 'public.outbox', '1', json_build_object('claim-check', $1::text), convert_to($2, 'UTF8'), 1, now(), 'e', 'permanent')`,
		"archive":     strings.Replace(claimRow, "public.outbox (", "public.kept (id, created_at, transaction_id, ", 1),
	} {
		if name == "archive" {
			sql = strings.Replace(sql, "VALUES (", "VALUES (1, now(), '1', ", 1)
		}
		needed = append(needed, claimed(t, pool, dir, name, sql))
	}
	claimed(t, pool, dir, "12345", "")
	claimed(t, pool, dir, "678", "")
	young, err := claim.Put(t.Context(), claim.Dir(dir), []byte("young"))
	require.NoError(t, err)

	two := claim.Removed{Objects: 2, Bytes: 8}
	require.Equal(t, two, collectClaims(t, config, daemon.Collection{Fate: daemon.LeaveObject}))
	require.Zero(t, collectClaims(t, config, daemon.Collection{OlderThan: 72 * time.Hour}))
	require.Equal(t, two, collectClaims(t, config, daemon.Collection{}))
	require.Zero(t, collectClaims(t, config, daemon.Collection{}))
	for _, r := range append(needed, young) {
		requireObject(t, dir, r)
	}
}

// TestCollectClaims_EveryTableThatACursorReadsCounts: also a table of another file, with any name of its column of
// headers, and the other partitions of a table of which a process reads one.
func TestCollectClaims_EveryTableThatACursorReadsCounts(t *testing.T) {
	t.Parallel()
	pool, config, dir := claiming(t, "")
	exec(t, pool, `
		CREATE TABLE public.events (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), meta jsonb);
		CREATE TABLE public.days (LIKE public.outbox INCLUDING ALL) PARTITION BY RANGE (created_at);
		CREATE TABLE public.day_1 PARTITION OF public.days FOR VALUES FROM (MINVALUE) TO ('2026-01-01 00:00Z');
		CREATE TABLE public.day_2 PARTITION OF public.days FOR VALUES FROM ('2026-01-01 00:00Z') TO (MAXVALUE);
		CREATE TABLE public.loose (headers json)`)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), `
  other: {source: {table: public.events, columns: {headers: meta}}, sink: {stdout: {}}, poll: 20ms}
  part: {source: {table: public.day_1, preset: outbox}, sink: {stdout: {}}, poll: 20ms}
`)))
	elsewhere := claimed(t, pool, dir, "elsewhere", `INSERT INTO public.events (id, meta) SELECT 1, jsonb_build_object('claim-check', $1::text) WHERE $2 <> ''`)
	sibling := claimed(t, pool, dir, "sibling", `INSERT INTO public.days (id, created_at, type, headers, payload) OVERRIDING SYSTEM VALUE VALUES (1, now(), 'a', jsonb_build_object('claim-check', $1::text), $2::jsonb)`)
	loose := claimed(t, pool, dir, "loose", `INSERT INTO public.loose SELECT json_build_object('claim-check', $1::text) WHERE $2 <> ''`)
	require.Zero(t, collectClaims(t, config, daemon.Collection{Also: []string{"public.loose"}}))
	for _, r := range []claim.Reference{elsewhere, sibling, loose} {
		requireObject(t, dir, r)
	}
	require.Equal(t, 1, collectClaims(t, config, daemon.Collection{}).Objects, "no row that the command knows of refers to it")
}

// An archive has the columns of its table, whatever the one with headers is called.
func TestCollectClaims_AnArchiveKeepsItsColumnOfHeaders(t *testing.T) {
	t.Parallel()
	pool, _, dir := claiming(t, "")
	exec(t, pool, `
		CREATE TABLE public.events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), meta jsonb, payload jsonb);
		CREATE UNIQUE INDEX ON public.events (created_at, id);
		CREATE TABLE public.kept (LIKE public.events)`)
	config := ruled(t, "  a: {source: {table: public.events, columns: {headers: meta, payload: payload}}, sink: {stdout: {}}, claims: "+dir+", poll: 20ms}\n",
		"public.events", "keep: 1h, mode: archive, archive: public.kept")
	needed := claimed(t, pool, dir, "needed", `INSERT INTO public.events (created_at, meta, payload) VALUES ('2026-01-01', jsonb_build_object('claim-check', $1::text), $2::jsonb)`)
	claimed(t, pool, dir, "orphan", "")
	deliver(t, config)
	require.EqualValues(t, 1, pruned(t, config).Rows)
	require.Equal(t, 1, collectClaims(t, config, daemon.Collection{}).Objects)
	requireObject(t, dir, needed)

	exec(t, pool, "DELETE FROM public.kept")
	require.Equal(t, 1, collectClaims(t, config, daemon.Collection{}).Objects)
}

// An archive has rows of all tables below that of its rule. The process that knows the column of headers may read one of them alone.
func TestCollectClaims_AnArchiveKeepsTheColumnsOfHeadersOfAllProcesses(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]string{
		"a partition":                    "",
		"a partition that was detached":  "ALTER TABLE public.events DETACH PARTITION public.jan",
		"a column that is no json there": "ALTER TABLE public.kept ADD other text",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _, dir := claiming(t, "")
			exec(t, pool, `
				CREATE TABLE public.events (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), meta jsonb, payload jsonb) PARTITION BY RANGE (created_at);
				CREATE TABLE public.jan PARTITION OF public.events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
				CREATE TABLE public.feb PARTITION OF public.events FOR VALUES FROM ('2026-02-01') TO (MAXVALUE);
				CREATE UNIQUE INDEX ON public.events (created_at, id);
				CREATE TABLE public.elsewhere (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, other json);
				CREATE TABLE public.kept (LIKE public.events)`)
			config := ruled(t, "  a: {source: {table: public.jan, columns: {headers: meta, payload: payload}}, sink: {stdout: {}}, claims: "+dir+", poll: 20ms}\n"+
				"  b: {source: {table: public.events}, sink: {stdout: {}}, poll: 20ms}\n"+
				"  c: {source: {table: public.elsewhere, columns: {headers: other}}, sink: {stdout: {}}, poll: 20ms}\n",
				"public.events", "keep: 1h, mode: archive, archive: public.kept")
			needed := claimed(t, pool, dir, "needed", `INSERT INTO public.events (id, created_at, meta, payload) VALUES (1, '2026-01-05', jsonb_build_object('claim-check', $1::text), $2::jsonb)`)
			claimed(t, pool, dir, "orphan", "")
			deliver(t, config)
			require.EqualValues(t, 1, pruned(t, config).Rows)
			if later != "" {
				exec(t, pool, later)
			}
			require.Equal(t, 1, collectClaims(t, config, daemon.Collection{}).Objects)
			requireObject(t, dir, needed)
		})
	}
}

// A partition may be attached again until it is dropped.
func TestCollectClaims_APartitionOnItsWayCounts(t *testing.T) {
	t.Parallel()
	for name, left := range onTheWay {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config, dir := claiming(t, "")
			exec(t, pool, `
				CREATE TABLE public.events (LIKE public.outbox INCLUDING ALL) PARTITION BY RANGE (created_at);
				CREATE TABLE public.jan PARTITION OF public.events FOR VALUES FROM (MINVALUE) TO (MAXVALUE)`)
			config.Processes[0].Source.Table = "public.events"
			needed := claimed(t, pool, dir, "needed", `INSERT INTO public.events (id, created_at, type, headers, payload) OVERRIDING SYSTEM VALUE VALUES (1, now(), 'a', jsonb_build_object('claim-check', $1::text), $2::jsonb)`)
			left(t, pool)
			claimed(t, pool, dir, "orphan", "")
			require.Equal(t, 1, collectClaims(t, config, daemon.Collection{}).Objects)
			requireObject(t, dir, needed)
		})
	}
}

func TestCollectClaims_RemovesNothingWhereReferencesCannotBeSeen(t *testing.T) {
	t.Parallel()
	pool, config, dir := claiming(t, "")
	orphan := claimed(t, pool, dir, "orphan", "")
	refused := func(with func(*daemon.Config, *daemon.Collection), want string) {
		t.Helper()
		config, c := config, daemon.Collection{OlderThan: time.Hour, Fate: daemon.DeleteObject}
		config.Processes = append([]daemon.Process{}, config.Processes...)
		with(&config, &c)
		_, err := daemon.CollectClaims(t.Context(), config, c)
		require.ErrorContains(t, err, want)
		requireObject(t, dir, orphan)
	}
	refused(func(_ *daemon.Config, c *daemon.Collection) { c.OlderThan = time.Second }, "--older-than must be at least 1m")
	refused(func(c *daemon.Config, _ *daemon.Collection) { c.Processes[0].Claims = "" }, "no process of the file has the key claims")
	refused(func(_ *daemon.Config, c *daemon.Collection) { c.Also = []string{"public.none"} }, "--also public.none: there is no table public.none")
	refused(func(_ *daemon.Config, c *daemon.Collection) { c.Also = []string{"public.bookings"} }, "--also public.bookings: it has no column headers of type json or jsonb")
	refused(func(c *daemon.Config, _ *daemon.Collection) { c.Processes[0].Source.Table = "public.bookings" }, "column")
	exec(t, pool, `CREATE TABLE public.texts (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), headers text)`)
	refused(func(c *daemon.Config, _ *daemon.Collection) { c.Processes[0].Source.Table = "public.texts" },
		`column "headers" of public.texts is text: references to claim checks can only be looked for in json and jsonb`)

	exec(t, pool, `INSERT INTO od.cursor (process_name, system_identifier) SELECT 'library', system_identifier FROM pg_control_system()`)
	refused(func(*daemon.Config, *daemon.Collection) {}, "has not run, or its table is gone, so it may need any row")
}

// TestCollectClaims_AStoreThatFailsIsNamed: what was removed before is counted.
func TestCollectClaims_AStoreThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	pool, config, dir := claiming(t, "")
	claimed(t, pool, dir, "1", "")
	claimed(t, pool, dir, "2", "")
	removed := 0
	all, err := daemon.CollectClaims(t.Context(), config, daemon.Collection{OlderThan: time.Hour, Fate: func(context.Context, claim.Store, claim.Object) error {
		if removed++; removed == 2 {
			return os.ErrPermission
		}
		return nil
	}})
	require.ErrorContains(t, err, "collect in "+dir+": permission denied")
	require.Equal(t, claim.Removed{Objects: 1, Bytes: 1}, all[0].Removed)
}

// TestCollectClaims_InACopyOfTheDatabaseRemovesNothing: the rows that refer to the objects are in the other one.
func TestCollectClaims_InACopyOfTheDatabaseRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, says string }{
		"a dump in another cluster":  {"UPDATE od.cursor SET system_identifier = system_identifier - 1", "process a: the database is not the one its cursor belongs to (system identifier "},
		"a dump in another database": {"UPDATE od.cursor SET database_oid = database_oid::bigint - 1", "it was restored or copied"},
		"a restore to a point in time": {"UPDATE od.cursor SET timeline = timeline + 6",
			"process a: the server's timeline was 7 and is 1, and no worker has noted that"},
		"a snapshot that was put back": {`UPDATE od.cursor SET state = 'halted', failed_class = 'restored', failed_error = 'went back', failed_attempts = 1, failed_position = '', failed_record_id = '', first_failed_at = now(), last_failed_at = now()`,
			"process a: went back"},
		"an old primary": {`UPDATE od.cursor SET state = 'halted', failed_class = 'old_primary', failed_error = 'ran elsewhere', failed_attempts = 1, failed_position = '', failed_record_id = '', first_failed_at = now(), last_failed_at = now()`,
			"process a: ran elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config, dir := claiming(t, "")
			exec(t, pool, "INSERT INTO public.outbox (type, payload) VALUES ('a', '{}')")
			require.NoError(t, drain(t, config))
			elsewhere := claimed(t, pool, dir, "of production", "")
			exec(t, pool, c.sql)
			_, err := daemon.CollectClaims(t.Context(), config, daemon.Collection{OlderThan: 24 * time.Hour, Fate: daemon.DeleteObject})
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "ordered-dispatcher restored --all --reason …")
			requireObject(t, dir, elsewhere)

			fenced := cursor.Decision{Actor: "alice", Reason: "it is no copy", Fenced: true}
			require.NoError(t, daemon.Restored(t.Context(), config, nil, fenced, func(daemon.Outcome) error { return nil }))
			require.Equal(t, 1, collectClaims(t, config, daemon.Collection{}).Objects)
		})
	}
}

// To read a table runs code of its owner: an index on an expression, a function of a view. Who may write to the audit may name
// any table there.
func TestCollectClaims_ReadsNoTableOfAStrangerThatOnlyTheAuditNames(t *testing.T) {
	t.Parallel()
	pool, config, dir := claiming(t, "")
	exec(t, pool, `
		CREATE TABLE public.theirs (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), headers jsonb) PARTITION BY RANGE (id);
		CREATE TABLE public.part PARTITION OF public.theirs FOR VALUES FROM (0) TO (9)`)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), "  other: {source: {table: public.theirs, columns: {headers: headers}}, sink: {stdout: {}}, poll: 20ms}\n")))
	needed := claimed(t, pool, dir, "needed", `INSERT INTO public.theirs (id, headers) SELECT 1, jsonb_build_object('claim-check', $1::text) WHERE $2 <> ''`)
	stranger := pgtest.Role(t, pool, "od_", "")
	dry := daemon.Collection{OlderThan: time.Hour, Fate: daemon.LeaveObject}
	for _, of := range []string{"part", "theirs"} {
		exec(t, pool, "ALTER TABLE public."+of+" OWNER TO "+stranger)
		_, err := daemon.CollectClaims(t.Context(), config, dry)
		require.ErrorContains(t, err, "process other last read public.theirs, and role \""+stranger+"\", which owns \"public\".\""+of+"\", has no table of this file")
		require.ErrorContains(t, err, "If you trust that role: --also public.theirs")
		exec(t, pool, "ALTER TABLE public."+of+" OWNER TO CURRENT_USER")
	}
	require.Zero(t, collectClaims(t, config, daemon.Collection{}))

	exec(t, pool, "ALTER TABLE public.theirs OWNER TO "+stranger)
	exec(t, pool, "ALTER TABLE public.theirs RENAME headers TO h")
	require.Equal(t, 1, collectClaims(t, config, dry).Objects, "without a column of headers nothing of it is read")
	exec(t, pool, "ALTER TABLE public.theirs RENAME h TO headers")
	require.Zero(t, collectClaims(t, config, daemon.Collection{Also: []string{"public.theirs"}}))
	for _, known := range []string{"public.outbox", "od.cursor"} {
		exec(t, pool, "ALTER TABLE "+known+" OWNER TO "+stranger)
		require.Zero(t, collectClaims(t, config, daemon.Collection{}), "the owner of %s is trusted anyway", known)
		exec(t, pool, "ALTER TABLE "+known+" OWNER TO CURRENT_USER")
	}
	requireObject(t, dir, needed)

	exec(t, pool, `ALTER TABLE public.theirs OWNER TO CURRENT_USER;
		CREATE VIEW public.v AS SELECT * FROM public.theirs;
		INSERT INTO od.cursor_event (process_name, actor, action, detail) SELECT process_name, actor, action, jsonb_set(detail, '{source.table}', '"public.v"') FROM od.cursor_event WHERE process_name = 'other' AND action = 'configure'`)
	_, err := daemon.CollectClaims(t.Context(), config, dry)
	require.ErrorContains(t, err, "public.v is not a table")
}
