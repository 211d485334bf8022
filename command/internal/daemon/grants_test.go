package daemon_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// confined is a database in which nobody but its owner may do anything that
// matters, with tables that are read in both orders and one that a sink writes to.
func confined(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: schema})
	require.NoError(t, err)
	exec(t, pool, `
		DO $$ BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database()); END $$;
		REVOKE ALL ON SCHEMA public FROM PUBLIC;
		CREATE SCHEMA app;
		CREATE TABLE app.plain (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			note jsonb NOT NULL DEFAULT '{}', kind text NOT NULL DEFAULT 'k', state text NOT NULL DEFAULT 'new', secret text
		);
		CREATE UNIQUE INDEX ON app.plain (created_at, id);
		CREATE TABLE app.parted (LIKE app.plain INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at);
		CREATE INDEX ON app.parted (id);
		CREATE TABLE app.part PARTITION OF app.parted DEFAULT;
		INSERT INTO app.plain (note) SELECT '{}' FROM generate_series(1, 3);
		INSERT INTO app.parted (note) SELECT '{}' FROM generate_series(1, 3);
		CREATE SCHEMA model;
		CREATE TABLE model.applied (n bigserial, process text, id bigint, note jsonb, times int DEFAULT 1, PRIMARY KEY (process, id));`)
	return pool
}

// confinedProcesses read every table in both orders, and reach every kind of sink.
const confinedProcesses = `
  whole: {source: {table: app.plain}, sink: {stdout: {}}, start: beginning, poll: 20ms}
  by_id: {source: {table: app.plain, order: id, columns: {payload: note, type: kind}}, sink: {webhook: {url: "{{accepts}}"}}, start: beginning, poll: 20ms}
  parted: {source: {table: app.parted, columns: {payload: note}, where: "state = 'new'"}, sink: {webhook: {url: "{{accepts}}"}}, start: beginning, poll: 20ms}
  parted_by_id: {source: {table: app.parted, order: id, columns: {payload: note}}, sink: {sql: {statement: "
      INSERT INTO model.applied AS a (process, id, note) VALUES (@process, @id, @payload) ON CONFLICT (process, id) DO UPDATE SET times = a.times + 1"}}, start: beginning, poll: 20ms}
  aside: {source: {table: app.plain, columns: {payload: note}}, sink: {webhook: {url: "{{refuses}}"}}, start: beginning, poll: 20ms, on_poison: dead_letter}
  halting: {source: {table: app.plain, columns: {payload: note}}, sink: {webhook: {url: "{{refuses}}"}}, start: beginning, poll: 20ms}
`

func confinedConfig(t testing.TB) daemon.Config {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuses" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(receiver.Close)
	return configure(t, pgtest.URL(t), strings.NewReplacer("{{accepts}}", receiver.URL+"/accepts", "{{refuses}}", receiver.URL+"/refuses").Replace(confinedProcesses))
}

// stranger is a role of the test's own that may log in, and nothing else.
func stranger(t testing.TB, pool *pgxpool.Pool) (name, address string) {
	t.Helper()
	name = pgtest.Role(t, pool, "Od-", "LOGIN PASSWORD 'secret'") // spelled so that it needs its quotes
	return name, pgtest.As(t, pgtest.URL(t), name, "secret")
}

// granted is the configuration of a stranger who has what is printed for it, and no more.
func granted(t testing.TB, pool *pgxpool.Pool, config daemon.Config) (role string, as daemon.Config) {
	t.Helper()
	role, address := stranger(t, pool)
	exec(t, pool, grants(t, config, role))
	config.Database = address
	return role, config
}

// grants returns what is printed for a role.
func grants(t testing.TB, config daemon.Config, role string) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: role}))
	return text.String()
}

func TestGrants_TheWholeDaemonRunsUnderThem(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	config := confinedConfig(t)
	_, config = granted(t, pool, config)

	require.Empty(t, doctor(t, config), "before the first start")
	require.ErrorContains(t, drain(t, config), `process "halting" is halted`)
	findings := doctor(t, config)
	require.False(t, daemon.Wrong(findings), "%+v", findings)
	require.Equal(t, 3, count(t, pool, "SELECT count(*) FROM model.applied WHERE times = 1"))

	all, _, _ := status(t, config, "")
	require.Len(t, all, 6)
	require.Equal(t, 3, count(t, pool, "SELECT count(*) FROM od.dead_letter"))
	for _, s := range all {
		require.Empty(t, s.Problem, s.Process)
		require.NotNil(t, s.Lag, s.Process)
		if s.Process != "halting" {
			require.EqualValues(t, 3, s.Sequence, s.Process)
		}
	}
}

// TestGrants_EachIsNeeded takes one right on one column away at a time: then the
// daemon stumbles over it, or shows less, and doctor has said so before.
func TestGrants_EachIsNeeded(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	config := confinedConfig(t)
	role, config := granted(t, pool, config)

	held := rights(t, pool, role)
	require.Greater(t, len(held), 50)
	require.False(t, stumbles(t, config), "with all of them")
	exec(t, pool, "ALTER TABLE od.cursor_event DISABLE TRIGGER keep_all")
	for _, right := range held {
		exec(t, pool, "TRUNCATE od.cursor, od.cursor_event, od.dead_letter, model.applied")
		exec(t, pool, "INSERT INTO od.cursor_event (process_name, actor, action) SELECT name, 'alice', 'amend' FROM unnest($1::text[]) name", config.Names()) // so each worker has to look
		exec(t, pool, fmt.Sprintf(`REVOKE %s FROM "%s"`, right, role))
		findings := doctor(t, config)
		require.True(t, daemon.Wrong(findings), "without %s: %+v", right, findings)
		promotes := right == "UPDATE (histories) ON od.cursor" // here no standby is promoted
		require.True(t, promotes || stumbles(t, config) || countsNoLetters(t, config), "the daemon does not need %s", right)
		exec(t, pool, fmt.Sprintf(`GRANT %s TO "%s"`, right, role))
	}
}

func TestGrants_ReadAsACommentedScript(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `
		CREATE TABLE public.events (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), body jsonb);
		CREATE UNIQUE INDEX ON public.events (created_at, id);
		CREATE TABLE public.model (id bigint, body jsonb);
		CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER note BEFORE INSERT ON public.model FOR EACH ROW EXECUTE FUNCTION public.note();`)
	config := configure(t, pgtest.URL(t), stdoutProcess+`
  b: {source: {table: public.events, order: id, columns: {payload: body}}, sink: {stdout: {}}}
  c: {source: {table: public.events, columns: {payload: body}}, sink: {sql: {statement: [LOCK TABLE public.model, "INSERT INTO public.model VALUES (@id, @payload)"]}}}
`)
	text := grants(t, config, "dispatcher")
	database := pool.Config().ConnConfig.Database
	require.Equal(t, `-- What role "dispatcher" needs to run these processes, and nothing else. Run it as the owner of what is named.
-- A new role: CREATE ROLE "dispatcher" LOGIN PASSWORD '…';
GRANT CONNECT ON DATABASE "`+database+`" TO "dispatcher";

-- The cursors and their audit.
GRANT USAGE ON SCHEMA "od" TO "dispatcher";
GRANT SELECT, UPDATE ("database_oid", "epoch", "failed_attempts", "failed_class", "failed_error", "failed_position", "failed_record_id", "first_failed_at", `+
		`"histories", "holder", "horizon", "last_failed_at", "next_attempt_at", "position", "sequence", "state", "system_identifier", "timeline") ON "od"."cursor" TO "dispatcher";
GRANT SELECT ON "od"."cursor_amended" TO "dispatcher";
GRANT SELECT, INSERT ("action", "actor", "detail", "from_position", "process_name", "reason", "to_position") ON "od"."cursor_event" TO "dispatcher";
GRANT SELECT ("process_name", "resolution") ON "od"."dead_letter" TO "dispatcher";

-- To make the cursor of a process at its first start: may be revoked when each has its own. Or the owner makes them:
-- INSERT INTO "od"."cursor" (process_name, position) VALUES ('a process', ''); -- '' is before the first record
GRANT INSERT ("database_oid", "epoch", "histories", "position", "process_name", "sequence", "system_identifier", "timeline") ON "od"."cursor" TO "dispatcher";

-- If role "dispatcher" is to show records again (`+"`ordered-dispatcher show`"+`), it also needs this:
-- GRANT SELECT ON "od"."cursor_amended" TO "dispatcher";
-- GRANT SELECT ON "od"."cursor_pruned" TO "dispatcher";
-- GRANT SELECT ("at", "attempts", "class", "error", "first_failed_at", "headers", "id", "key", "payload", "position", "process_name", "reason", "record_created_at", "record_id", "resolution", "resolved_at", "resolved_by", "sequence", "table_name", "type") ON "od"."dead_letter" TO "dispatcher";

-- What the processes read and write.
GRANT USAGE ON SCHEMA "public" TO "dispatcher"; -- a, b, c
GRANT SELECT ON "public"."bookings" TO "dispatcher"; -- a
GRANT SELECT ("body", "created_at", "id", "xmin") ON "public"."events" TO "dispatcher"; -- b, c
GRANT INSERT ("body", "id") ON "public"."model" TO "dispatcher"; -- c
GRANT SELECT ON SEQUENCE public.bookings_id_seq TO "dispatcher"; -- a
GRANT SELECT ON SEQUENCE public.events_id_seq TO "dispatcher"; -- b, c

-- To see when the transactions of all sessions began, which is the fence of an order column that defaults to now(): without it these
-- processes are refused. For a superuser, or a role with ADMIN OPTION. Better is the default that doctor names, which needs no such right.
GRANT pg_read_all_stats TO "dispatcher"; -- c

-- Not checked, so add what they need: statement 1 of 2, triggers of "public"."model" of process c.

-- `+"`ordered-dispatcher erase`"+` needs in addition DELETE on the table, or UPDATE on the columns to blank, the same and SELECT on an archive table, and this:
-- GRANT SELECT ("process_name", "record_id", "table_name"), DELETE ON "od"."cursor_amended" TO "dispatcher";
-- GRANT SELECT ("key", "process_name", "record_id", "resolution", "table_name"), UPDATE ("error", "headers", "key", "payload") ON "od"."dead_letter" TO "dispatcher";
`, text)
}

func TestGrants_SaysEachOnce(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, stdoutProcess)
	config.Schema = "public" // of the source, too
	text := grants(t, config, "dispatcher")
	require.Equal(t, 1, strings.Count(text, `GRANT USAGE ON SCHEMA "public" TO "dispatcher"`), text)
}

// A where needs its columns, so the operators' role may read them of every record.
func TestGrants_SayThatOperatorsReadTheColumnsOfWhere(t *testing.T) {
	t.Parallel()
	database(t)
	text := func(where string) string {
		var b bytes.Buffer
		config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings"+where+"}, sink: {stdout: {}}}\n")
		require.NoError(t, daemon.Grants(t.Context(), &b, daemon.GrantsConfig{Config: config, Role: "w", Operator: "support"}))
		return b.String()
	}
	const said = "-- that source.where names: the role can read these of every record, and nothing else of what records hold."
	require.Contains(t, text(`, where: "customer <> ''"`), said)
	require.Contains(t, text(`, where: "customer <> ''"`), `GRANT SELECT ("created_at", "customer", "id") ON "public"."bookings" TO "support"`)
	require.Contains(t, text(""), "That takes positions and ids, and nothing of what records hold.")
}

func TestGrants_NamesWhatItCouldNotFindOut(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, stdoutProcess+`
  b: {source: {table: "public.\"x\r\nDROP TABLE public.bookings\""}, sink: {stdout: {}}}
  c: {source: {table: public.bookings}, sink: {sql: {statement: INSERT INTO public.model VALUES (@id)}}}
`)
	var text bytes.Buffer
	err := daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: "r"})
	require.ErrorContains(t, err, `process "b": find out what reading`)
	require.ErrorContains(t, err, `process "c": find out what statement 1 of 1 of the sql sink needs: ERROR: relation "public.model" does not exist`)
	require.Equal(t, 1, daemon.ExitCode(err))
	require.Contains(t, text.String(), `GRANT SELECT ON "public"."bookings" TO "r"; -- a, c`, "what is known is printed")
	require.Contains(t, text.String(), `-- MISSING HERE: process "c": `)
	require.NotRegexp(t, `(?m)^DROP`, text.String(), "a name ends no comment")
}

func TestDoctor_NotesThatItCannotLookIntoTheSQLSink(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	config := confinedConfig(t)
	_, config = granted(t, pool, config)
	exec(t, pool, "DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$")
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"parted_by_id", daemon.Note, "doctor could not check whether the role may run the sink's statement", ""})
	require.False(t, daemon.Wrong(findings), "it may well be able to")
}

// TestGrants_OperatorsNeedEach takes one right away at a time: then one of an
// operator's commands is refused.
func TestGrants_OperatorsNeedEach(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	config := confinedConfig(t)
	require.ErrorContains(t, drain(t, config), `process "halting" is halted`)
	role, address := stranger(t, pool)
	var text bytes.Buffer
	require.NoError(t, daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: "postgres", Operator: role}))
	exec(t, pool, text.String())
	config.Database = address

	require.NoError(t, decide(t, pool, config), "with all of them")
	require.True(t, stumbles(t, config), "and yet it cannot deliver")
	requireNoRecords(t, config)
	held := rights(t, pool, role)
	require.Greater(t, len(held), 50)
	for _, right := range held {
		exec(t, pool, fmt.Sprintf(`REVOKE %s FROM "%s"`, right, role))
		err := decide(t, pool, config)
		require.Error(t, err, "operators do not need %s", right)
		require.True(t, isDenial(err.Error()), "%v", err)
		exec(t, pool, fmt.Sprintf(`GRANT %s TO "%s"`, right, role))
	}
}

// requireNoRecords: a role sees what a process stands at, and nothing of what records hold.
func requireNoRecords(t testing.TB, config daemon.Config) {
	t.Helper()
	pool := pgtest.Pool(t, config.Database, pgtest.PoolConfig{})
	for _, what := range []string{"note FROM app.plain", "kind FROM app.plain", "t FROM app.parted t", "secret FROM app.parted", "payload FROM od.dead_letter", "headers FROM od.dead_letter", "* FROM od.dead_letter"} {
		_, err := pool.Exec(t.Context(), "SELECT "+what)
		require.ErrorContains(t, err, "42501", what)
	}
	all, _, _ := status(t, config, "")
	for _, s := range all {
		require.Empty(t, s.Problem, s.Process)
		require.NotNil(t, s.Lag, s.Process)
	}
	letters, err := daemon.NewDeadLetters(t.Context(), config)
	require.NoError(t, err)
	defer letters.Close()
	open, err := letters.List(t.Context(), "", true, 10)
	require.NoError(t, err)
	letter, err := letters.Show(t.Context(), open[0].ID)
	require.NoError(t, err)
	require.True(t, letter.Withheld)
	require.Empty(t, letter.Payload)
}

// decide does what operators do, until the first refusal.
func decide(t testing.TB, owner *pgxpool.Pool, config daemon.Config) error {
	t.Helper()
	d := cursor.Decision{Actor: "me", Reason: "why not"}
	for _, p := range config.Processes {
		o, err := daemon.NewOperator(t.Context(), config, p.Name)
		require.NoError(t, err)
		defer o.Close()
		for _, decide := range []func(context.Context, cursor.Decision) (daemon.Outcome, error){
			o.Pause, o.Resume, func(ctx context.Context, d cursor.Decision) (daemon.Outcome, error) {
				return o.Seek(ctx, daemon.ToRecord("2"), d)
			},
		} {
			if p.Name == "halting" {
				break // its record wants a decision of its own
			}
			if _, err := decide(t.Context(), d); err != nil {
				return err
			}
		}
		if _, err := o.History(t.Context(), 10); err != nil {
			return err
		}
	}
	if _, err := daemon.Partitions(t.Context(), config, nil); err != nil {
		return err
	}
	first := config.Processes[0]
	new := first
	new.Name = rand.Text() // what became of a name is kept for ever
	config.Processes = []daemon.Process{new}
	o, err := daemon.NewOperator(t.Context(), config, new.Name)
	require.NoError(t, err)
	defer o.Close()
	if _, err := o.Pause(t.Context(), d); err != nil {
		return err
	}
	if _, err := daemon.Forget(t.Context(), config, new.Name, d); err != nil {
		return err
	}
	for _, names := range [][2]string{{first.Name, new.Name}, {new.Name, first.Name}} {
		config.Processes[0].Name = names[1]
		if _, err := daemon.Rename(t.Context(), config, names[0], names[1], d); err != nil {
			return err
		}
	}
	letters, err := daemon.NewDeadLetters(t.Context(), config)
	require.NoError(t, err)
	defer letters.Close()
	exec(t, owner, "UPDATE od.dead_letter SET resolution = NULL, resolved_at = NULL")
	open, err := letters.List(t.Context(), "", false, 10)
	if err != nil {
		return err
	}
	if _, err := letters.Show(t.Context(), open[0].ID); err != nil {
		return err
	}
	return letters.Discard(t.Context(), open[:1], cursor.Decision{Actor: "me", Reason: "why not"}, func(cursor.DeadLetter) error { return nil })
}

const rightsSQL = `
WITH role AS (
	SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $1
), granted AS (
	SELECT a.grantee, format('%s ON DATABASE %I', a.privilege_type, d.datname) AS text
	FROM pg_catalog.pg_database d, aclexplode(d.datacl) a WHERE d.datname = current_database()
	UNION ALL
	SELECT a.grantee, format('%s ON SCHEMA %I', a.privilege_type, n.nspname)
	FROM pg_catalog.pg_namespace n, aclexplode(n.nspacl) a
	UNION ALL
	SELECT a.grantee, format('%s ON %s %s', a.privilege_type, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass)
	FROM pg_catalog.pg_class c, aclexplode(c.relacl) a
	UNION ALL
	SELECT a.grantee, format('%s (%I) ON %s', a.privilege_type, c.attname, c.attrelid::regclass)
	FROM pg_catalog.pg_attribute c, aclexplode(c.attacl) a
)
SELECT granted.text FROM granted JOIN role ON role.oid = granted.grantee ORDER BY 1`

// rights are those that a role holds, down to one column each.
func rights(t testing.TB, pool *pgxpool.Pool, role string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), rightsSQL, role)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

// stumbles runs the daemon until the server denies it something, or to its end.
func stumbles(t testing.TB, config daemon.Config) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := &denials{end: cancel}
	err := daemon.Run(ctx, daemon.RunConfig{
		Config: config, Drain: true, Grace: time.Second, Stdout: io.Discard, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	return log.found.Load() || err != nil && isDenial(err.Error())
}

// countsNoLetters reports whether status does not know how many dead letters are open.
func countsNoLetters(t testing.TB, config daemon.Config) bool {
	t.Helper()
	all, _, _ := status(t, config, "")
	return all[0].DeadLetters == nil
}

// denials ends a run at the first denial in its log.
type denials struct {
	end   context.CancelFunc
	found atomic.Bool
}

func (d *denials) Write(line []byte) (int, error) {
	if isDenial(string(line)) {
		d.found.Store(true)
		d.end()
	}
	return len(line), nil
}

// isDenial tells the server's word, and what a source says before it tries.
func isDenial(text string) bool {
	return strings.Contains(text, "42501") || strings.Contains(text, "may not read") || strings.Contains(text, "may not use")
}

// TestGrants_ShowAWorkerThatItsIDsStartedAgain: after a promotion rows are looked for by their ids, where these are known to
// have grown since.
func TestGrants_ShowAWorkerThatItsIDsStartedAgain(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	role, config := granted(t, pool, config)
	require.Empty(t, doctor(t, config))
	exec(t, pool, "INSERT INTO public.bookings SELECT FROM generate_series(1, 3)")
	require.NoError(t, drain(t, config))

	source, err := table.New(pgtest.Pool(t, config.Database, pgtest.PoolConfig{}), config.Processes[0].Source)
	require.NoError(t, err)
	var at cursor.Position
	var horizon string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT position, horizon::text FROM od.cursor").Scan(&at, &horizon))
	late := func() processor.Late {
		_, err := source.Read(t.Context(), at, 1)
		require.NoError(t, err)
		late, err := source.Late(t.Context(), at, horizon, false)
		require.NoError(t, err)
		return late
	}
	exec(t, pool, "UPDATE public.bookings SET customer = 'changed' WHERE id = 1")
	require.Empty(t, late().Reason, "its id says that it was delivered")
	exec(t, pool, "DELETE FROM public.bookings WHERE id < 3; SELECT setval('public.bookings_id_seq', 1)")
	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '1 hour')")
	require.Contains(t, late().Reason, "row 2 of public.bookings, and maybe others, was inserted or changed since")

	exec(t, pool, fmt.Sprintf(`REVOKE SELECT ON SEQUENCE public.bookings_id_seq FROM "%s"`, role))
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Warn, "may not read sequence public.bookings_id_seq", "GRANT SELECT ON SEQUENCE public.bookings_id_seq TO "})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))
}
