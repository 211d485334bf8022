package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// status is what is printed for people and for programs.
func status(t testing.TB, config daemon.Config, process string) (all []daemon.Status, table string, document map[string]any) {
	t.Helper()
	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: config, Process: process})
	require.NoError(t, err)
	defer reader.Close()
	all, err = reader.Read(t.Context())
	require.NoError(t, err)
	var line strings.Builder
	require.NoError(t, daemon.PrintStatusJSON(&line, all))
	require.Equal(t, 1, strings.Count(line.String(), "\n"))
	var list struct{ Processes []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(line.String()), &list))
	require.Len(t, list.Processes, len(all))
	if len(all) > 0 {
		document = list.Processes[0]
	}
	return all, words(all), document
}

// words are what people read of statuses: a line for each, and its notes.
func words(all []daemon.Status) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s  %s  %s  %s  %d  %d  %s  %s\n", visible.Line(s.Process), s.Word(), screen.Waiting(s), screen.Oldest(s),
			s.Sequence, s.Epoch, screen.Dash(s.Holder), screen.Dash(string(s.Position)))
	}
	for _, s := range all {
		for _, note := range s.Notes() {
			fmt.Fprintf(&b, "%s: %s\n", visible.Line(s.Process), visible.Inline(note))
		}
	}
	return visible.Text(b.String())
}

// noEnv is an empty environment.
func noEnv(string) (string, bool) { return "", false }

// statusUntil is status once process a, or the first one, is as wanted.
func statusUntil(t testing.TB, config daemon.Config, wanted func(daemon.Status) bool) (all []daemon.Status, table string, document map[string]any) {
	t.Helper()
	require.Eventually(t, func() bool {
		all, table, document = status(t, config, "")
		return wanted(all[0])
	}, patience, 20*time.Millisecond)
	return all, table, document
}

func isHeld(s daemon.Status) bool { return s.Hold != nil }

func isHeldBy(kind daemon.HoldKind) func(daemon.Status) bool {
	return func(s daemon.Status) bool { return s.Hold != nil && s.Hold.Kind == kind }
}

// left waits until the sessions of the daemons that ran in this test have ended.
func left(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	untilTrue(t, pool, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% run/%'")
}

// watched has a worker, and returns when status sees it.
func watched(t testing.TB, config daemon.Config) {
	t.Helper()
	working(t, config)
	require.Eventually(t, func() bool {
		_, _, document := status(t, config, "")
		return document["state"] == "running"
	}, patience, 10*time.Millisecond)
}

func TestStatus_FromNewToCaughtUpToBehind(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	insert(t, pool, 3)

	_, text, document := status(t, config, "")
	require.Regexp(t, `a +new +- +- +0 +0 +- +-`, text)
	require.Equal(t, "new", document["state"])
	require.Nil(t, document["lag"])

	require.NoError(t, drain(t, config))
	left(t, pool)
	_, text, document = status(t, config, "a")
	require.Regexp(t, `a +no worker +0 +0s +3 +1 +\S+ +at\.int:\S+`, text)
	require.Equal(t, map[string]any{"records": "0", "capped": false, "seconds": 0.0}, document["lag"])
	require.Equal(t, "3", document["sequence"], "64 bits are a string")
	require.Equal(t, "1", document["epoch"])
	require.Equal(t, []any{}, document["held_back_by"])
	require.NotEmpty(t, document["holder"])

	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() + interval '1 microsecond'), (clock_timestamp() + interval '2 microseconds')")
	all, text, _ := status(t, config, "")
	require.Regexp(t, `a +no worker +2 `, text)
	require.EqualValues(t, 2, all[0].Lag.Records)
	require.Positive(t, *all[0].Lag.Age)
}

// A DELETE inserts nothing, but its transaction may: PostgreSQL has one lock for all that write.
func TestStatus_NamesALongDelete(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	insert(t, pool, 1)
	require.NoError(t, drain(t, config))
	watched(t, config)
	gate := begin(t, pool, "SELECT pg_advisory_lock(1)")
	ended := make(chan error, 1)
	go func() {
		_, err := pool.Exec(context.Background(), "delete from public.bookings where (select pg_advisory_xact_lock_shared(1)) is not null")
		ended <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND NOT granted AND a.datname = current_database())")
	insert(t, pool, 1)

	all, text, document := status(t, config, "")
	require.Equal(t, "DELETE", all[0].Holding[0].Command)
	require.Regexp(t, `a: records are held back by pid \d+ \(application .*\), active in DELETE, since 2.*: its open transaction may still insert before them \(a transaction with DELETE has the lock`, text)
	require.Equal(t, "DELETE", document["held_back_by"].([]any)[0].(map[string]any)["command"])
	exec(t, gate, "SELECT pg_advisory_unlock_all()")
	require.NoError(t, gate.Rollback(t.Context()))
	require.NoError(t, waittest.Receive(t, ended, "the statement ends"))
}

func TestStatus_NamesWhoHoldsRecordsBack(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	require.NoError(t, drain(t, config))
	watched(t, config)

	holder := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "nightly import"})
	tx := begin(t, holder, "INSERT INTO public.bookings DEFAULT VALUES")
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	pid := tx.Conn().PgConn().PID()
	insert(t, pool, 1)

	all, text, document := status(t, config, "")
	require.Len(t, all[0].Holding, 1)
	require.EqualValues(t, pid, all[0].Holding[0].PID)
	require.Regexp(t, `a: records are held back by pid \d+ \(application "nightly import", user "\w+"\), idle in transaction after INSERT, since 2.*: its open transaction may still insert before them; `+
		`next: wait until it ends, or end it: SELECT pg_terminate_backend\(pid\) FROM pg_stat_activity WHERE pid = \d+ AND xact_start = `, text)
	held := document["held_back_by"].([]any)[0].(map[string]any)
	require.EqualValues(t, pid, held["pid"])
	require.Equal(t, "nightly import", held["application"])
	since, err := time.Parse(time.RFC3339, held["since"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), since, time.Minute)
}

// Where one transaction holds many processes up, one wait tells for all of them that it stays.
func TestStatus_WaitsOnceForAllProcesses(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "  p%d: {source: {table: public.bookings}, sink: {stdout: {}}}\n", i)
	}
	config := configure(t, pgtest.URL(t), many.String())
	require.NoError(t, drain(t, config))
	watched(t, config)
	tx := begin(t, pool, "INSERT INTO public.bookings DEFAULT VALUES")
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	insert(t, pool, 1)

	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: config})
	require.NoError(t, err)
	defer reader.Close()
	pauses := reader.CountPauses()
	all, err := reader.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, *pauses)
	require.Len(t, all, 30)
	for _, s := range all {
		require.Equal(t, daemon.HoldWriter, s.Hold.Kind, s.Process)
	}
}

func TestStatus_LeavesOutTransactionsThatComeAndGo(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, stdoutProcess)
	require.NoError(t, drain(t, config))
	busy(t)
	for range 3 {
		all, _, _ := status(t, config, "")
		require.Positive(t, all[0].Lag.Records)
		require.Empty(t, all[0].Holding)
	}
}

func TestStatus_ShowsTheRecordItHaltedAt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no\nsuch customer", http.StatusBadRequest)
	}))
	defer receiver.Close()
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+receiver.URL+"'}}}\n"+
		"  b: {source: {table: public.bookings}, sink: {stdout: {}}}\n")
	err := drain(t, config)
	var halt *processor.HaltError
	require.ErrorAs(t, err, &halt)
	require.Equal(t, daemon.ExitHalted, daemon.ExitCode(err))

	left(t, pool)
	all, text, document := status(t, config, "")
	require.Len(t, all, 2)
	require.True(t, daemon.Halted(all))
	require.Regexp(t, `a +halted +2 `, text)
	require.Regexp(t, `b +no worker +0 `, text)
	require.Regexp(t, `(?m)^a: halted at record 1, which the receiver refuses for good, 1 attempt since 2\S+: .*400.*; `+
		"next: `ordered-dispatcher retry a`, `ordered-dispatcher amend a --payload NEW -c FILE --reason …`, or `ordered-dispatcher skip a --reason …`$", text)
	failure := document["failure"].(map[string]any)
	require.Equal(t, "1", failure["record_id"])
	require.Equal(t, true, failure["permanent"])

	all, _, _ = status(t, config, "b")
	require.Len(t, all, 1)
	require.Equal(t, "b", all[0].Process)
}

func TestStatus_WithoutAFileKnowsTheRows(t *testing.T) {
	t.Parallel()
	pool := database(t)
	alone := daemon.Config{Database: pgtest.URL(t), Schema: schema}
	_, text, _ := status(t, alone, "")
	require.Empty(t, text)

	insert(t, pool, 1)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), stdoutProcess)))
	left(t, pool)
	_, text, document := status(t, alone, "")
	require.Regexp(t, `a +no worker +- +- +1 +1 `, text)
	require.Contains(t, text, "name it with -c")
	require.Nil(t, document["lag"])
}

func TestStatus_OrderByIDHasAnAgeWhereThereIsATime(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}}\n")
	require.NoError(t, drain(t, config))
	insert(t, pool, 1)
	left(t, pool)
	all, _, _ := status(t, config, "")
	require.Positive(t, *all[0].Lag.Age)
}

func TestStatus_OrderByIDHasNoAgeWithoutATime(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}}\n")
	exec(t, pool, "ALTER TABLE public.bookings RENAME COLUMN created_at TO made")
	require.NoError(t, drain(t, config))
	insert(t, pool, 1)
	left(t, pool)
	_, text, document := status(t, config, "")
	require.Regexp(t, `a +no worker +1 +- `, text)
	require.Equal(t, map[string]any{"records": "1", "capped": false, "seconds": nil}, document["lag"])
}

// TestStatus_NamesALockWhereNoAgeIsKnown: without a time in the table it waits for what a
// worker would do within a poll.
func TestStatus_NamesALockWhereNoAgeIsKnown(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, "  a: {source: {table: public.bookings, order: id}, sink: {stdout: {}}, poll: 20ms}\n")
	exec(t, pool, "ALTER TABLE public.bookings RENAME COLUMN created_at TO made")
	working(t, config)
	statusUntil(t, config, func(s daemon.Status) bool { return !s.New && s.Lag != nil })
	open(t, "psql", "SELECT FROM od.cursor FOR SHARE")
	open(t, "psql", "SELECT FROM od.cursor FOR SHARE")
	insert(t, pool, 1)
	all, _, _ := status(t, config, "")
	require.NotNil(t, all[0].Hold)
	require.Equal(t, daemon.HoldLocked, all[0].Hold.Kind)
}

func TestStatus_SaysWhyALagIsNotKnown(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, stdoutProcess)
	insert(t, pool, 1)
	require.NoError(t, drain(t, config))
	exec(t, pool, "DROP TABLE public.bookings")
	_, text, document := status(t, config, "")
	require.Regexp(t, `a +cannot read +- `, text)
	require.Equal(t, "cannot read", document["state"])
	require.Contains(t, document["problem"], "public.bookings")
}

func TestStatus_RefusesAnUnknownProcess(t *testing.T) {
	t.Parallel()
	database(t)
	for _, c := range []struct {
		config daemon.Config
		want   string
	}{
		{configure(t, pgtest.URL(t), stdoutProcess+"  b: {source: {table: t}, sink: {stdout: {}}}\n"), `there is no process "c": there are a, b`},
		{daemon.Config{Database: pgtest.URL(t), Schema: schema}, `there is no process "c", and none at all yet`},
	} {
		reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: c.config, Process: "c"})
		require.NoError(t, err)
		_, err = reader.Read(t.Context())
		require.ErrorContains(t, err, c.want)
		require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
		reader.Close()
	}
}

func TestStatus_SaysTheFixForMissingTables(t *testing.T) {
	t.Parallel()
	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: daemon.Config{Database: pgtest.URL(t)}})
	require.NoError(t, err)
	defer reader.Close()
	_, err = reader.Read(t.Context())
	require.ErrorContains(t, err, "list cursors: ")
	require.ErrorContains(t, err, "ordered-dispatcher migrate up")
	require.Equal(t, daemon.ExitFailed, daemon.ExitCode(err))
}
