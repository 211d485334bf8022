package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// working runs processes until stop, or the end of the test.
func working(t testing.TB, config daemon.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, quiet(daemon.RunConfig{Config: config}))
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, waittest.Receive(t, done, "the run ends"))
	}
	t.Cleanup(stop)
	return stop
}

// onlyReads is the configuration of a role that may read the tables, and nothing else.
func onlyReads(t testing.TB, pool *pgxpool.Pool, config daemon.Config) daemon.Config {
	t.Helper()
	role, address := role(t, pool)
	exec(t, pool, "GRANT USAGE ON SCHEMA od, public TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA od, public TO "+role)
	config.Database = address
	return config
}

// TestStatus_OfAWorkerThatCannotReadNamesItsRole: the one who asks can read, so only the worker and its role know why.
func TestStatus_OfAWorkerThatCannotReadNamesItsRole(t *testing.T) {
	t.Parallel()
	pool := database(t)
	config := configure(t, pgtest.URL(t), stdoutProcess)
	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '2 minutes')")
	require.NoError(t, drain(t, config))
	role := pgtest.Role(t, pool, "od_", "LOGIN PASSWORD 'secret'")
	exec(t, pool, "GRANT USAGE ON SCHEMA od, public TO "+role+"; GRANT ALL ON ALL TABLES IN SCHEMA od, public TO "+role)
	worker := config
	worker.Database = pgtest.As(t, config.Database, role, "secret")
	working(t, worker)
	there := "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND usename = '" + role + "' AND application_name LIKE '% run/%'"
	untilTrue(t, pool, there)
	exec(t, pool, "REVOKE ALL ON public.bookings FROM "+role+"; INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '1 minute')")
	// Before the worker has announced itself, none is there.
	_, text, _ := statusUntil(t, config, func(s daemon.Status) bool {
		return isHeldBy(daemon.HoldNobody)(s) && strings.Contains(s.Hold.Text, "although one is there")
	})
	require.Regexp(t, "(?m)^a: records wait, and no worker holds the cursor's row, although one is there: its last worker was .*; "+
		"next: read its log. .* `ordered-dispatcher doctor` names the grant, run as "+role+"$", text)
}

// TestStatus_SaysRunningWhileAWorkerWatchesAndNoWorkerAtOnce: also where nothing is
// to be delivered, and for a worker that stands by, in a role that may see nothing of
// other sessions.
func TestStatus_SaysRunningWhileAWorkerWatchesAndNoWorkerAtOnce(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess+"  b: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n")
	first, second := working(t, config), working(t, config)
	asked := onlyReads(t, pool, config)
	states := func() string {
		_, text, _ := status(t, asked, "")
		return text
	}
	require.Eventually(t, func() bool {
		now := states()
		return strings.Count(now, "running") == 2
	}, time.Minute, 10*time.Millisecond)
	first()
	require.Regexp(t, `(?m)^a +running .*\n^b +running `, states(), "another one stands by")
	second()
	left(t, pool)
	now := states()
	require.Regexp(t, `(?m)^a +no worker .*\n^b +no worker `, now)
	require.Contains(t, now, "a: no worker runs it: ")
	require.Contains(t, now, "next: see that `ordered-dispatcher run` runs")
}

// TestStatus_AfterAPromotionSaysThatWorkersMayBeAtTheOldPrimary: while two primaries ran, status on the new one said that no worker
// runs, and to start one.
func TestStatus_AfterAPromotionSaysThatWorkersMayBeAtTheOldPrimary(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	left(t, pool)
	exec(t, pool, "UPDATE od.cursor SET timeline = timeline + 1") // as that of another server
	config = onlyReads(t, pool, config)
	_, text, _ := status(t, config, "")
	require.Regexp(t, `(?m)^a: no worker of it has a session on this server: its last worker was .*A standby was promoted since then .timeline 2, now 1., and workers may still deliver from the old primary; next: fence the old primary first, then see that`, text)
	exec(t, pool, "UPDATE od.cursor SET timeline = 0") // a mark, and no timeline
	_, text, _ = status(t, config, "")
	require.Contains(t, text, "a: no worker runs it: ")
}

// TestStatus_SeesAWorkerWhoseAnnouncementWasLostWithTheServer: a promoted standby, or a restored database, may lack it. The worker
// delivered, and status said that there was none, for good.
func TestStatus_SeesAWorkerWhoseAnnouncementWasLostWithTheServer(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	config := configure(t, server.URL(), stdoutProcess)
	working(t, config)
	untilTrue(t, pool, "SELECT count(*) = 1 FROM od.cursor_event WHERE process_name = 'a' AND action = 'watch'")
	exec(t, pool, "DELETE FROM od.cursor_event WHERE action = 'watch'; INSERT INTO od.cursor_event (process_name, actor, action, detail) VALUES ('a', 'me', 'watch', '{\"set\": \"of another\"}')")
	_, text, _ := status(t, config, "")
	require.Contains(t, text, "a: no worker runs it: ")
	require.NoError(t, server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		_, text, _ := status(t, config, "")
		return strings.Contains(text, "running") && !strings.Contains(text, "no worker")
	}, patience, 100*time.Millisecond)
}

// TestStatus_OfACursorThatWasDeletedOrRenamedSaysSo: a worker that is started does not begin anew.
func TestStatus_OfACursorThatWasDeletedOrRenamedSaysSo(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	for sql, want := range map[string]string{
		"INSERT INTO od.cursor_event (process_name, actor, action) VALUES ('a', 'me', 'create')":                          "the cursor's row was deleted, and a new one would send its records a second time: put the row back, or give the cursor up with `ordered-dispatcher process forget a --reason …`",
		`INSERT INTO od.cursor_event (process_name, actor, action, detail) VALUES ('a', 'me', 'renamed', '{"new": "b"}')`: "the cursor was renamed to \"b\": give the process that name in the file. If this is another process, free its name with `ordered-dispatcher process forget a --reason …`",
	} {
		exec(t, pool, "DELETE FROM od.cursor_event; "+sql)
		_, text, _ := status(t, config, "")
		require.Contains(t, text, want)
		require.NotContains(t, text, "no worker has run it yet")
		problem, fix, _ := strings.Cut(want, ": ")
		f := requireFinding(t, doctor(t, config), daemon.Finding{Process: "a", Severity: daemon.Refuse, Problem: problem})
		require.Equal(t, strings.Contains(fix, "give the process that name"), strings.Contains(f.Fix, "give the process that name"), "doctor says what status says")
	}
}

// TestStatus_OfAProcessUnderANewNameSaysWhyRunRefusesIt: doctor says the same.
func TestStatus_OfAProcessUnderANewNameSaysWhyRunRefusesIt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	old := strings.Replace(stdoutProcess, "{source", "{start: beginning, source", 1)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), old)))
	renamed := configure(t, pgtest.URL(t), strings.Replace(old, "a:", "renamed:", 1))
	refused := drain(t, renamed)
	require.ErrorContains(t, refused, "`ordered-dispatcher process rename a renamed -c FILE --reason …`")
	all, text, _ := status(t, renamed, "")
	require.Equal(t, refused.Error(), all[0].Problem)
	require.NotContains(t, text, "no worker has run it yet")

	all, _, _ = status(t, configure(t, pgtest.URL(t), strings.NewReplacer("a:", "another:", "source: {", "source: {where: id > 1, ").Replace(old)), "")
	require.Equal(t, "no worker has run it yet: start `ordered-dispatcher run`", all[0].Problem)
}

// TestStatus_OfAProcessWithoutAStartSaysWhyRunRefusesIt: it proposed `run`, which refuses as well.
func TestStatus_OfAProcessWithoutAStartSaysWhyRunRefusesIt(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	config.Processes[0].Start = ""
	all, _, _ := status(t, config, "")
	require.Equal(t, "no worker has run it yet: start `ordered-dispatcher run`", all[0].Problem, "an empty table needs no start")

	insert(t, pool, 3)
	other := configure(t, pgtest.URL(t), strings.Replace(stdoutProcess, "a:", "other:", 1))
	require.NoError(t, drain(t, other))
	refused := drain(t, config)
	require.ErrorContains(t, refused, "`start: beginning` sends 3 records")
	all, _, _ = status(t, config, "")
	require.Contains(t, refused.Error(), all[0].Problem)
	require.Contains(t, all[0].Problem, "Cursors whose process is not in this file: other")

	exec(t, pool, "UPDATE od.cursor SET epoch = 10000000") // as after a restore
	all, _, _ = status(t, config, "")
	require.Contains(t, all[0].Problem, "If it has never run, say where it starts: `start: beginning` sends 3 records")
	require.Contains(t, all[0].Problem, "`ordered-dispatcher process rename OLD a`. Cursors whose process is not in this file: other")
	require.NotContains(t, all[0].Problem, "start `ordered-dispatcher run`")
}

func TestStatus_OfACursorThatWasGivenUpDoesNotSayThatItNeverRan(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	insert(t, pool, 1)
	config.Processes[0].Start = processor.Beginning
	require.NoError(t, drain(t, config))
	_, err := daemon.Forget(t.Context(), config, "a", cursor.Decision{Actor: "test", Reason: "anew"})
	require.NoError(t, err)
	_, text, _ := status(t, config, "")
	require.Contains(t, text, "a: its cursor was given up, and no worker has run it since: start `ordered-dispatcher run`")
}

// TestStatus_OfANameThatACursorHadSaysWhatBecameOfIt: without a file, too.
func TestStatus_OfANameThatACursorHadSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	config.Processes = nil
	created(t, pool)
	for sql, want := range map[string]string{
		"INSERT INTO od.cursor_event (process_name, actor, action, detail) VALUES ('old', 'me', 'renamed', '{\"new\": \"a\"}')": `the cursor was renamed to "a": ask for it by that name`,
		"INSERT INTO od.cursor_event (process_name, actor, action) VALUES ('old', 'me', 'create')":                              "`ordered-dispatcher process forget old --reason …`",
		"INSERT INTO od.cursor_event (process_name, actor, action) VALUES ('old', 'me', 'forget')":                              `there is no process "old"`,
	} {
		exec(t, pool, sql)
		reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: config, Process: "old"})
		require.NoError(t, err)
		_, err = reader.Read(t.Context())
		reader.Close()
		var usage *daemon.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
		exec(t, pool, "DELETE FROM od.cursor_event WHERE process_name = 'old'")
	}
}

// TestStatus_OfACursorThatMayBeLostProposesNoWorker: one that is started begins where the file says, and passes over what came since,
// or sends everything again. Whether the process has ever run, nothing shows.
func TestStatus_OfACursorThatMayBeLostProposesNoWorker(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	_, text, _ := status(t, config, "")
	require.Contains(t, text, "a: no worker has run it yet: start `ordered-dispatcher run`")
	exec(t, pool, "INSERT INTO od.cursor (process_name, position, epoch) VALUES ('other', '', 28000000000001)") // as after a restore
	_, text, _ = status(t, config, "")
	require.Contains(t, text, "a: it has no cursor. A standby was promoted or the database restored, so if the process has delivered before, its cursor is lost: start no worker")
	require.Contains(t, text, "ordered-dispatcher seek a -c FILE --to-id ID")
}

// TestStatus_AWorkerWhoseReadWaitsIsThere: its one session is in the middle of a read,
// which waits for a lock of the table.
func TestStatus_AWorkerWhoseReadWaitsIsThere(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	working(t, config)
	tx := begin(t, pool, "LOCK TABLE public.bookings IN ACCESS EXCLUSIVE MODE")
	defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
	waits := func() (waits, alone bool) {
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT coalesce(bool_or(wait_event_type = 'Lock'), false), count(*) = 1
			FROM pg_stat_activity
			WHERE datname = current_database() AND application_name ~ 'ordered-dispatcher'`).Scan(&waits, &alone))
		return waits, alone
	}
	require.Eventually(t, func() bool {
		w, alone := waits()
		if w && !alone { // before its read waits, its sessions are left alone: each that is ended delays the read
			exec(t, pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name ~ 'run/' AND state = 'idle'`)
		}
		return w && alone
	}, patience, 10*time.Millisecond)
	all, text, _ := status(t, config, "")
	require.NotContains(t, text, "no worker")
	require.Contains(t, text, " has locked the table; next: end its transaction, or: SELECT pg_terminate_backend(")
	require.Len(t, all, 1)
}

// A program with the library announces nothing, so that of its process only a held
// lease would be seen: nothing is claimed.
func TestStatus_ClaimsNothingOfAProgramWithTheLibrary(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "INSERT INTO od.cursor (process_name, holder, epoch) VALUES ('a', 'a program', 1)")
	_, text, document := status(t, configure(t, pgtest.URL(t), stdoutProcess), "")
	require.Regexp(t, `(?m)^a +running `, text)
	require.Nil(t, document["hold"])
}

// TestStatus_ASessionOfAnotherRoleIsNoWorker: every role may choose the names of a
// worker's sessions. A worker in a new role is seen all the same.
func TestStatus_ASessionOfAnotherRoleIsNoWorker(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	require.NoError(t, drain(t, config))
	left(t, pool)
	role, address := stranger(t, pool)
	for _, name := range []string{config.Watching("x"), cursor.ApplicationLease + "a", cursor.ApplicationTx + "a"} {
		spoof := pgtest.Pool(t, address, pgtest.PoolConfig{ApplicationName: name})
		require.NoError(t, spoof.Ping(t.Context()))
	}
	_, text, _ := status(t, config, "")
	require.Regexp(t, `(?m)^a +no worker `, text)

	exec(t, pool, fmt.Sprintf(`GRANT ALL ON SCHEMA od TO %[1]q; GRANT ALL ON ALL TABLES IN SCHEMA od, public TO %[1]q`, role))
	moved := config
	moved.Database = address
	require.NoError(t, drain(t, moved))
	_, text, _ = status(t, config, "")
	require.Regexp(t, `(?m)^a +running `, text, "the role is that of a worker now")
}

func TestWatching_FitsIntoAnApplicationName(t *testing.T) {
	t.Parallel()
	config := configure(t, "postgres://u@h/d", stdoutProcess)
	require.Regexp(t, `^mine run/[0-9a-f]{12}$`, config.Watching("mine"))
	long := config.Watching(strings.Repeat("x", 80))
	require.Len(t, long, 63, "PostgreSQL cuts off the rest")
	require.Equal(t, config.Watching("")[1:], long[len(long)-16:])
	other := config
	other.Schema = "elsewhere"
	require.NotEqual(t, config.Watching(""), other.Watching(""))
}
