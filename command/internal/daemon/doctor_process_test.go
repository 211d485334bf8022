package daemon_test

import (
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// drained is a database whose process a has delivered five records.
func drained(t testing.TB, processes string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool, config := fixture(t, processes)
	insert(t, pool, 5)
	require.NoError(t, drain(t, config))
	return pool, config
}

// session is one connection named importer, and what it does is not undone.
func session(t testing.TB, sql string) *pgx.Conn {
	t.Helper()
	conn := pgtest.Connect(t, with(t, pgtest.URL(t), "application_name", "importer"))
	exec(t, conn, sql)
	return conn
}

func TestDoctor_NamesWhoHoldsTheFence(t *testing.T) {
	t.Parallel()
	const setNow = "ALTER TABLE public.bookings ALTER COLUMN created_at SET DEFAULT now()"
	const insertOne = "BEGIN; INSERT INTO public.bookings DEFAULT VALUES"
	for name, c := range map[string]struct{ before, sql, names, fix string }{
		"an open transaction":             {"", insertOne, `application "importer"`, "SELECT pg_terminate_backend("},
		"one that only reads, with now()": {setNow, "BEGIN; SELECT 1", `, idle in transaction, since 2`, "SELECT pg_terminate_backend("},
		"a prepared one":                  {"", insertOne + "; PREPARE TRANSACTION 'it''s forgotten'", `the prepared transaction "it's forgotten" (user "postgres") since 2`, "ROLLBACK PREPARED 'it''s forgotten';"},
		"a prepared one of two lines":     {"", insertOne + "; PREPARE TRANSACTION E'x\n\\\\! id\n'", "the prepared transaction", `ROLLBACK PREPARED U&'x\+00000A\\! id\+00000A';`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := drained(t, stdoutProcess)
			exec(t, pool, c.before)
			session(t, c.sql)
			insert(t, pool, 1) // which waits for it
			exec(t, pool, "DELETE FROM od.cursor_event WHERE action = 'watch'")
			f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "records of public.bookings are held back by ", c.fix})
			require.Contains(t, f.Problem, c.names)
			exec(t, pool, f.Fix)
			require.NotContains(t, problems(doctor(t, config)), "held back")
		})
	}
}

// TestDoctor_EndsNoOtherTransactionThanThatWhichHoldsTheFenceOfNow: the SQL had the pid of the session alone, which may be in a COMMIT
// that waits for a standby by then.
func TestDoctor_EndsNoOtherTransactionThanThatWhichHoldsTheFenceOfNow(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	exec(t, pool, "ALTER TABLE public.bookings ALTER COLUMN created_at SET DEFAULT now(); DELETE FROM od.cursor_event WHERE action = 'watch'")
	conn := session(t, "BEGIN; SELECT 1")
	insert(t, pool, 1) // which waits for it
	held := daemon.Finding{"a", daemon.Note, "records of public.bookings are held back by ", "pg_terminate_backend"}
	former := requireFinding(t, doctor(t, config), held)
	exec(t, conn, "ROLLBACK")
	exec(t, pool, former.Fix)
	require.NoError(t, conn.Ping(t.Context()))
	exec(t, conn, "BEGIN; SELECT 1")
	exec(t, pool, former.Fix)
	require.NoError(t, conn.Ping(t.Context()))
}

// TestDoctor_EndsNoWriterForWhichNothingWaits: a producer was to be ended, from 10 s on with a warning, although the worker was idle and no
// record waited, or there was no worker.
func TestDoctor_EndsNoWriterForWhichNothingWaits(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	left(t, pool)
	session(t, "BEGIN; INSERT INTO public.bookings DEFAULT VALUES")
	exec(t, pool, "SELECT pg_sleep_until(max(xact_start) + interval '10.1 seconds') FROM pg_stat_activity WHERE application_name = 'importer' AND datname = current_database()")
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Note, "a worker that starts now may have to wait for pid", "wait until it ends"})
	require.False(t, daemon.Wrong(findings), "%+v", findings)
	requireNoEnd(t, "", findings)

	insert(t, pool, 1)
	findings = doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Note, "a worker that starts now may have to wait for pid", "wait until it ends"})
	requireNoEnd(t, "", findings)

	exec(t, pool, "DELETE FROM od.cursor_event WHERE action = 'watch'; DELETE FROM public.bookings") // a program with the library
	findings = doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Note, "newer records of public.bookings may be held back by pid", "wait until it ends"})
	require.False(t, daemon.Wrong(findings), "%+v", findings)
	requireNoEnd(t, "", findings)
}

// TestDoctor_AWriterOfWhichTheTimeIsHiddenIsNotToBeEnded: whether it began before what waits was stamped is not seen.
func TestDoctor_AWriterOfWhichTheTimeIsHiddenIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	waitingRecord(t, pool)
	open(t, "importer", "INSERT INTO public.bookings DEFAULT VALUES")
	role, config := granted(t, pool, config)
	_, text, _ := status(t, config, "")
	require.Regexp(t, `(?m)^a: records may be held back by pid \d+ .application "importer", .*, if its transaction was open before they were stamped; next: wait until it ends; role "`+role+
		`" cannot see since when it is open; to see it: GRANT pg_read_all_stats TO "`+role+`"$`, text)
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Note, "records of public.bookings may be held back by", "wait until it ends; role "})
	requireNoEnd(t, text, findings)
}

func TestDoctor_NamesWhoHasLockedACursor(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	session(t, "BEGIN; SELECT 1 FROM od.cursor FOR UPDATE")
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "its row is locked by ", "SELECT pg_terminate_backend("})
	require.Contains(t, f.Problem, `application "importer"`)
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))
}

func TestDoctor_FindsACursorOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	exec(t, pool, "UPDATE od.cursor SET timeline = timeline + 1")
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Note, "a standby was promoted since its last change of worker", ""})
	require.Len(t, findings, 1)

	exec(t, pool, "UPDATE od.cursor SET system_identifier = system_identifier + 1")
	findings = doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"a", daemon.Refuse, "it was restored or copied", "`ordered-dispatcher retry a`"})
	require.Len(t, findings, 1)
	insert(t, pool, 1)
	require.ErrorAs(t, drain(t, config), new(*processor.HaltError), "as it says")
}

func TestDoctor_PassesOnWhatTheRowsSay(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess+"  b: {source: {table: public.bookings, order: id}, sink: {stdout: {}}, poll: 20ms}\n")
	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES ('2199-01-01')")
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Warn, `a "created_at" of the future`, "UPDATE"})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))

	exec(t, pool, "TRUNCATE public.bookings RESTART IDENTITY")
	f = requireFinding(t, doctor(t, config), daemon.Finding{"b", daemon.Refuse, "before the cursor at 5: it was reset", "SELECT setval('public.bookings_id_seq', 5) FROM public.bookings_id_seq WHERE last_value < 5"})
	exec(t, pool, f.Fix[strings.Index(f.Fix, "SELECT setval"):strings.Index(f.Fix, "; then `retry`")])
	require.Empty(t, doctor(t, config))
}

// TestDoctor_NamesAHaltAsRestored: what one process has noticed is true of the others, too. The way out of one of them alone says what
// becomes of its keys.
func TestDoctor_NamesAHaltAsRestored(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	s := newStore(t, pool)
	row, err := s.Look(t.Context(), "a")
	require.NoError(t, err)
	row.Epoch += 7
	require.ErrorIs(t, s.HaltRestored(t.Context(), "a", cursor.Seen{}.See(row)), cursor.ErrHalted)
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Warn, "no operator has decided yet: the cursor went back", "ordered-dispatcher restored --all"})

	o := operatorOf(t, config)
	outcome, err := o.Seek(t.Context(), daemon.ToBeginning, cursor.Decision{Actor: "me", Reason: "they have none of it"})
	require.NoError(t, err)
	require.Contains(t, outcome.Text, "without a created_at, records that are delivered from there on have other dedup keys")
	require.Empty(t, doctor(t, config))
}

// TestDoctor_OnAnOldPrimaryProposesNoDecision: who followed one had the new primary go on below numbers that receivers had.
func TestDoctor_OnAnOldPrimaryProposesNoDecision(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	exec(t, pool, "UPDATE od.cursor SET state = 'halted', failed_position = position, failed_record_id = '', failed_class = 'old_primary', failed_error = 'the cursor went back'")
	require.NotContains(t, fixes(doctor(t, config)), "ordered-dispatcher ")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Warn, "the server may be an old primary: the cursor went back", "fence this server, and make no decision here"})
}

// doctor is run when something is wrong: it must not wait with the others.
func TestDoctor_DoesNotWaitForALock(t *testing.T) {
	t.Parallel()
	for table, process := range map[string]string{"od.cursor": "", "public.bookings": "a"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			_, config := drained(t, stdoutProcess)
			session(t, "BEGIN; LOCK TABLE "+table)
			findings, err := daemon.DoctorWithin(t.Context(), config, time.Second)
			require.NoError(t, err)
			f := requireFinding(t, findings, daemon.Finding{process, daemon.Refuse, "a check did not end in time", "SELECT pg_terminate_backend("})
			require.Contains(t, f.Problem, `application "importer"`)
		})
	}
}

// TestDoctor_DuringTheFirstRunTakesNoCursorForDeleted: the first worker makes the row after
// the doctor has read all of them.
func TestDoctor_DuringTheFirstRunTakesNoCursorForDeleted(t *testing.T) {
	t.Parallel()
	started := strings.Replace(stdoutProcess, "{source", "{start: beginning, source", 1)
	for name, processes := range map[string]string{"with a start": started, "without one": stdoutProcess} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			require.NoError(t, drain(t, configure(t, pgtest.URL(t), started)))
			config := configure(t, pgtest.URL(t), processes)
			for _, f := range daemon.DoctorOfRows(t, config, nil) {
				require.NotEqual(t, daemon.Refuse, f.Severity, "%+v", f)
			}
			exec(t, pool, "DELETE FROM od.cursor")
			requireFinding(t, daemon.DoctorOfRows(t, config, nil), daemon.Finding{"a", daemon.Refuse, "the cursor's row was deleted", "process forget a"})
		})
	}
}

// TestDoctor_SQLOfHostileNamesMeansThemInPsql: people paste what doctor proposes. psql takes
// a backslash outside quotes, and a line of its own, for a command to a shell.
func TestDoctor_SQLOfHostileNamesMeansThemInPsql(t *testing.T) {
	t.Parallel()
	psql := pgtest.Require(t, "psql")
	pool := database(t)
	dir := t.TempDir()
	hostile := func(kind string) string {
		return kind[:1] + "'\"\n\\! touch mark\n    fix: DROP TABLE b;\r\u202e\u2028"
	}
	name := func(kind string) string { return `"` + strings.ReplaceAll(hostile(kind), `"`, `""`) + `"` }
	exec(t, pool, fmt.Sprintf(`
		CREATE SCHEMA %[1]s;
		CREATE TABLE %[1]s.%[2]s (id bigint GENERATED BY DEFAULT AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), %[3]s text) PARTITION BY RANGE (id);
		CREATE TABLE %[1]s.%[4]s PARTITION OF %[1]s.%[2]s (created_at DEFAULT LOCALTIMESTAMP) DEFAULT;
		CREATE TABLE %[1]s."plain" (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), %[3]s text);
		CREATE FUNCTION %[1]s.%[5]s() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.created_at := now(); RETURN NEW; END';
		CREATE TRIGGER %[6]s BEFORE INSERT ON %[1]s.%[4]s FOR EACH ROW EXECUTE FUNCTION %[1]s.%[5]s();`,
		name("schema"), name("table"), name("column"), name("partition"), name("function"), name("g trigger")))
	config := configure(t, pgtest.URL(t), stdoutProcess)
	config.Processes[0].Source.Table = name("schema") + "." + name("table")

	ran := 0
	for range 4 { // what refuses hides what comes after it
		for _, f := range doctor(t, config) {
			var text strings.Builder
			require.NoError(t, screen.NewPage(&text, noEnv).Wide().Findings([]daemon.Finding{f}))
			require.NotRegexp(t, `(?m)^\s*(\\|fix: DROP TABLE)`, text.String())
			sql, _, _ := strings.Cut(f.Fix, ", or ")
			if regexp.MustCompile(`^(ALTER|CREATE|DROP|GRANT|SELECT) `).MatchString(sql) {
				paste(t, psql, dir, sql+";")
				ran++
			}
		}
	}
	require.GreaterOrEqual(t, ran, 3, "a default, a trigger, an index")
	require.Empty(t, doctor(t, config), "all is fixed")

	config.Processes[0].Source.Table = name("schema") + ".plain"
	ordered := config.Processes[0].Source.Columns
	for _, columns := range []table.Columns{ordered, {ID: name("absent")}} {
		config.Processes[0].Source.Columns = columns
		var text strings.Builder
		require.NoError(t, screen.NewPage(&text, noEnv).Wide().Findings(doctor(t, config)))
		require.Contains(t, text.String(), "fix: ")
		require.NotRegexp(t, `(?m)^\s*(\\|fix: DROP TABLE)`, text.String())
	}
	require.NoFileExists(t, filepath.Join(dir, "mark"))
}

// paste pastes SQL into psql.
func paste(t testing.TB, psql, dir, sql string) {
	t.Helper()
	command := osexec.Command(psql, "-X", "-v", "ON_ERROR_STOP=1", pgtest.URL(t))
	command.Dir = dir
	command.Stdin = strings.NewReader(sql)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", sql, out)
}
