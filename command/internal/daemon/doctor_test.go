package daemon_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// doctor returns what it finds besides that tests run as a superuser.
func doctor(t testing.TB, config daemon.Config) []daemon.Finding {
	t.Helper()
	findings, err := daemon.Doctor(t.Context(), config)
	require.NoError(t, err)
	return slices.DeleteFunc(findings, func(f daemon.Finding) bool { return strings.Contains(f.Problem, "is a superuser") })
}

// problems and fixes are the texts of all findings.
func problems(findings []daemon.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		text.WriteString(f.Problem + "\n")
	}
	return text.String()
}

func fixes(findings []daemon.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		text.WriteString(f.Fix + "\n")
	}
	return text.String()
}

func requireFinding(t testing.TB, findings []daemon.Finding, want daemon.Finding) daemon.Finding {
	t.Helper()
	for _, f := range findings {
		if f.Process == want.Process && f.Severity == want.Severity && strings.Contains(f.Problem, want.Problem) {
			require.Contains(t, f.Fix, want.Fix)
			return f
		}
	}
	require.Failf(t, "finding missing", "%+v in %+v", want, findings)
	return daemon.Finding{}
}

// requireHeld is requireFinding for what holds process a up: a note at first, and a warning once it is 10 s old, which a
// busy machine may take to get here.
func requireHeld(t testing.TB, findings []daemon.Finding, problem, fix string) {
	t.Helper()
	for _, f := range findings {
		if f.Process == "a" && f.Severity != daemon.Refuse && strings.Contains(f.Problem, problem) {
			require.Contains(t, f.Fix, fix)
			return
		}
	}
	require.Failf(t, "finding missing", "%q in %+v", problem, findings)
}

func TestDoctor_FindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	require.Empty(t, doctor(t, config))
	insert(t, pool, 2)
	require.NoError(t, drain(t, config))
	require.Empty(t, doctor(t, config))
}

func TestDoctor_NamesMissingGrants(t *testing.T) {
	t.Parallel()
	pool := database(t)
	name, address := role(t, pool)
	config := configure(t, address, stdoutProcess)

	exec(t, pool, "GRANT USAGE ON SCHEMA public TO "+name)
	exec(t, pool, "GRANT SELECT ON od.cursor TO "+name)
	// Each fix works as it stands.
	follow := func(findings []daemon.Finding) {
		for _, f := range findings {
			exec(t, pool, f.Fix)
		}
	}
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, "may not use schema \"od\"", `GRANT USAGE ON SCHEMA "od" TO "` + name + `"`})
	requireFinding(t, findings, daemon.Finding{"a", daemon.Refuse, "may not read", "GRANT SELECT"})
	follow(findings)
	findings = doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, `lacks UPDATE ("database_oid", "epoch", `, `GRANT UPDATE ("database_oid", "epoch", `})
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, `lacks SELECT on "od"."cursor_event"`, `GRANT SELECT ON "od"."cursor_event" TO "` + name + `"`})
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, `lacks INSERT ("action", `, `GRANT INSERT ("action", `})
	requireFinding(t, findings, daemon.Finding{"", daemon.Warn, `lacks SELECT ("process_name", "resolution") on "od"."dead_letter"`, `GRANT SELECT ("process_name", `})
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, `lacks SELECT on "od"."cursor_amended"`, `GRANT SELECT ON "od"."cursor_amended" TO "` + name + `"`})
	require.Len(t, findings, 5)
	follow(findings)
	findings = doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Refuse, `lacks INSERT ("database_oid", "epoch", "histories", `, `GRANT INSERT ("database_oid", "epoch", "histories", "position", "process_name", "sequence", "system_identifier", "timeline") ON "od"."cursor"`})
	require.Len(t, findings, 1)
	follow(findings)
	require.Empty(t, doctor(t, config))
}

func TestDoctor_NamesMissingTables(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	config := configure(t, pgtest.URL(t), stdoutProcess)
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, `the cursor tables are missing in schema "od"`, "ordered-dispatcher migrate up"})
	requireFinding(t, findings, daemon.Finding{"a", daemon.Refuse, "public.bookings", ""})
	require.Len(t, findings, 2, "nothing that follows from these")

	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: schema})
	require.NoError(t, err)
	exec(t, pool, "INSERT INTO od.ordered_dispatcher_migration (version_id, is_applied) VALUES (99999, true)")
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "newer than this program (migration 99999)", "newer ordered-dispatcher"})
	exec(t, pool, "DROP TABLE od.ordered_dispatcher_migration")
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Note, "made by another tool", ""})
}

func TestDoctor_PassesOnWhatTheSourceFinds(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ALTER COLUMN created_at SET DEFAULT now()")
	exec(t, pool, "CREATE VIEW public.seen AS SELECT * FROM public.bookings")
	config := configure(t, pgtest.URL(t), stdoutProcess+"  b: {source: {table: public.seen}, sink: {stdout: {}}}\n")
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Warn, "now()", "SET DEFAULT clock_timestamp()"})
	requireFinding(t, findings, daemon.Finding{"b", daemon.Refuse, "is a view", "name the table behind it"})
	require.True(t, daemon.Wrong(findings))

	var text strings.Builder
	require.NoError(t, screen.NewPage(&text, noEnv).Wide().Findings(findings))
	require.Contains(t, text.String(), "a: warning: column created_at of public.bookings defaults to now()")
	require.Contains(t, text.String(), "\n    fix: name the table behind it in source.table\n")
	require.Regexp(t, `(?m)^\d+ errors?, \d+ warnings?, \d+ notes?$`, text.String())
}

func TestDoctor_ChecksStatementsOfTheSQLSink(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, "  a: {source: {table: public.bookings}, sink: {sql: {statement: INSERT INTO public.model VALUES (@id)}}}\n")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Refuse, `relation "public.model" does not exist`, "sink's statement"})
	exec(t, pool, "CREATE TABLE public.model (id bigint)")
	require.Empty(t, doctor(t, config))
}

func TestDoctor_FindsAPositionOfAnotherSource(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	insert(t, pool, 1)
	require.NoError(t, drain(t, config))

	config = configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}}\n"+
		"  b: {source: {table: public.bookings}, sink: {stdout: {}}, start: 'int:00000000000000000007'}\n")
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Refuse, "does not belong to this source", "put the source or the start back"})
	requireFinding(t, findings, daemon.Finding{"b", daemon.Refuse, `int:00000000000000000007`, "put the source or the start back"})
	requireFinding(t, findings, daemon.Finding{"a", daemon.Note, `source.order was "created_at" and is "id" here`, "if that worker still runs"})
}

func TestDoctor_NotesCursorsThatTheFileDoesNotKnow(t *testing.T) {
	t.Parallel()
	database(t)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), strings.Replace(stdoutProcess, "a:", "renamed:", 1))))
	findings := doctor(t, configure(t, pgtest.URL(t), stdoutProcess))
	requireFinding(t, findings, daemon.Finding{"renamed", daemon.Note, "the file has no such process: it has a", "process rename renamed NEW"})
	require.False(t, daemon.Wrong(findings), "another file may run it")
}

func TestDoctor_CountsConnections(t *testing.T) {
	t.Parallel()
	pool := database(t)
	config := configure(t, with(t, pgtest.URL(t), "pool_max_conns", "3"), stdoutProcess)
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Refuse, "1 processes need 4 connections, and pool_max_conns allows 3", "raise it to 4"})

	role, address := login(t, pool)
	exec(t, pool, "ALTER ROLE "+role+" CONNECTION LIMIT 3")
	config.Database = address
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Refuse, "each worker opens up to 4 connections, and the CONNECTION LIMIT of role", "CONNECTION LIMIT 4"})
}

// A worker needs more connections than its processes: one for receivers, one for the notifier, and those of the
// console, without which it still starts.
func TestDoctor_CountsConnectionsOfNotifyAndOfTheConsole(t *testing.T) {
	t.Parallel()
	pool := database(t)
	config := configure(t, with(t, pgtest.URL(t), "pool_max_conns", "4"), stdoutProcess+`listen_token: receivers-may-ask-with-this
notify: {targets: {ops: {webhook: {url: "https://ops.example/"}}}}
admin: {read_tokens: {grafana: a-token-of-24-characters}}
`)
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "with listen_token and notify, need 6 connections, and pool_max_conns allows 4", "raise it to 6"})

	role, address := login(t, pool)
	config.Database = address
	exec(t, pool, "ALTER ROLE "+role+" CONNECTION LIMIT 15")
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "each worker opens up to 16 connections (10 of them for the console), and the CONNECTION LIMIT of role", "CONNECTION LIMIT 16"})
	exec(t, pool, "ALTER ROLE "+role+" CONNECTION LIMIT 16")
	for _, f := range doctor(t, config) {
		require.NotContains(t, f.Problem, "connections")
	}
	exec(t, pool, "ALTER ROLE "+role+" CONNECTION LIMIT 5")
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Refuse, "each worker opens up to 16 connections", "CONNECTION LIMIT 16"})
}

func TestDoctor_RefusesAReadOnlyServer(t *testing.T) {
	t.Parallel()
	database(t)
	config := configure(t, with(t, pgtest.URL(t), "default_transaction_read_only", "on"), stdoutProcess)
	requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Refuse, "read-only", "default_transaction_read_only = off"})
}

func TestDoctor_RefusesAStandby(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts two servers")
	}
	primary := pgtest.Server(t, nil)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: primary.URL(), Schema: schema})
	require.NoError(t, err)
	standby := pgtest.Standby(t, primary)
	findings := doctor(t, configure(t, standby.URL(), stdoutProcess))
	requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, "is a standby", "connect to the primary"})
}

func TestDoctor_SaysWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	for address, fix := range map[string]string{
		"postgres://u:CANARY@127.0.0.1:1/d":                "start the server, or correct host and port",
		withDatabase(t, pgtest.URL(t), "no_such_database"): "correct the database",
	} {
		findings, err := daemon.Doctor(context.Background(), configure(t, address, stdoutProcess))
		require.NoError(t, err)
		require.Len(t, findings, 1)
		requireFinding(t, findings, daemon.Finding{"", daemon.Refuse, "cannot connect", fix})
		require.NotContains(t, findings[0].Problem, "CANARY")
	}
}

func TestDoctor_SaysThatAPoolerStandsBetween(t *testing.T) {
	t.Parallel()
	database(t)
	for mode, want := range map[string]daemon.Finding{
		"transaction": {"", daemon.Note, "the connection goes through a pooler: it must hold 4 server connections", ""},
		"session":     {"", daemon.Note, "the connection goes through a pooler: it must hold 4 server connections", ""},
		"statement":   {"", daemon.Refuse, "does not let a transaction through", "set pool_mode = transaction"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			requireFinding(t, doctor(t, configure(t, pgtest.Bouncer{PoolMode: mode}.Start(t, pgtest.URL(t)), stdoutProcess)), want)
		})
	}
}

func TestDoctor_WarnsOfSettingsThatCutALeaseShort(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role, address := stranger(t, pool)
	exec(t, pool, `ALTER ROLE "`+role+`" SUPERUSER`)
	config := configure(t, address, stdoutProcess)
	require.Empty(t, doctor(t, config))

	exec(t, pool, `ALTER ROLE "`+role+`" SET statement_timeout = '200ms'`)
	f := requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "end after 200ms (statement_timeout)", `ALTER ROLE "` + role + `" SET statement_timeout = '30s'`})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))

	if count(t, pool, "SELECT current_setting('server_version_num')::int") < 170000 {
		return // has no transaction_timeout
	}
	exec(t, pool, `ALTER ROLE "`+role+`" SET transaction_timeout = '5s'`)
	f = requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "end after 5s (transaction_timeout)", `SET transaction_timeout = 0`})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))
}

// Leases commit durably whatever the role says; producers do as the database says.
func TestDoctor_WarnsOfCommitsThatACrashLoses(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role, address := stranger(t, pool)
	exec(t, pool, `ALTER ROLE "`+role+`" SUPERUSER; ALTER ROLE "`+role+`" SET synchronous_commit = off`)
	require.Empty(t, doctor(t, configure(t, address, stdoutProcess)))

	exec(t, pool, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$")
	config := configure(t, pgtest.URL(t), stdoutProcess)
	f := requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "synchronous_commit is off for all of the database", "SET synchronous_commit = on"})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))
}

func TestDoctor_NotesAnEncodingOfAnyBytes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	name := pool.Config().ConnConfig.Database + "_raw"
	exec(t, pool, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		require.NoError(t, err)
	})
	findings := doctor(t, configure(t, withDatabase(t, pgtest.URL(t), name), stdoutProcess))
	requireFinding(t, findings, daemon.Finding{"", daemon.Note, "is SQL_ASCII: its texts may hold any bytes", ""})
}

func TestDoctor_NamesMigrationsThatAreMissing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "DELETE FROM od.ordered_dispatcher_migration WHERE version_id = (SELECT max(version_id) FROM od.ordered_dispatcher_migration)")
	f := requireFinding(t, doctor(t, configure(t, pgtest.URL(t), stdoutProcess)), daemon.Finding{"", daemon.Refuse, "migrations are not applied: 0", "ordered-dispatcher migrate up"})
	require.True(t, strings.HasSuffix(f.Problem, ".sql"), f.Problem)
}
