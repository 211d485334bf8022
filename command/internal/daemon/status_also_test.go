package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// backOff has a record of process a fail, of which the next attempt is an hour away.
func backOff(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	s := newStore(t, pool)
	fail(t, s, cursor.Failure{RecordID: "7", Attempts: 3, First: time.Now(), Last: time.Now(), Wait: time.Hour, Error: "answered 503"})
}

// TestStatus_SaysThatNoWorkerRunsBeforeABackOff: status said when the next attempt comes, although no worker makes it.
func TestStatus_SaysThatNoWorkerRunsBeforeABackOff(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	left(t, pool)
	backOff(t, pool)
	all, text, document := status(t, config, "")
	require.Equal(t, daemon.HoldNobody, all[0].Hold.Kind, text)
	require.Regexp(t, `(?m)^a: no worker runs it: its last worker was .*\na: record 7 fails, 3 attempts since .*: answered 503$`, text)
	require.NotContains(t, text, "the next attempt comes in")
	require.Equal(t, "no worker", document["state"])

	working(t, config) // as soon as one runs, the attempt comes
	statusUntil(t, config, isHeldBy(daemon.HoldFailing))
}

// TestStatus_SaysThatNoWorkerRunsBesideAStrangersLock: a session that had locked the row counted as a worker.
func TestStatus_SaysThatNoWorkerRunsBesideAStrangersLock(t *testing.T) {
	t.Parallel()
	for name, application := range map[string]string{"a stranger": "psql", "an operator": cursor.ApplicationOperator + "a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := drained(t, stdoutProcess)
			left(t, pool)
			open(t, application, "SELECT FROM od.cursor FOR UPDATE")
			exec(t, pool, "SELECT pg_sleep(5.1)") // for so long an operator may be at work
			all, text, document := status(t, config, "")
			require.Equal(t, daemon.HoldLocked, all[0].Hold.Kind, text)
			require.Regexp(t, `(?m)^a +no worker `, text)
			require.Regexp(t, `(?m)^a: the cursor's row is locked by .*\na: no worker runs it: its last worker was .*; next: see that`, text)
			require.Len(t, document["also"], 1)
			require.Equal(t, "no_worker", document["also"].([]any)[0].(map[string]any)["kind"])
		})
	}
}

// TestStatus_SaysOfEachProcessThatWorkersMayBeAtTheOldPrimary: status said it only of a process without a worker, and before that only
// what held the process up.
func TestStatus_SaysOfEachProcessThatWorkersMayBeAtTheOldPrimary(t *testing.T) {
	t.Parallel()
	primary, standby, onPrimary, onStandby := pair(t)
	var others string
	for _, name := range []string{"failing", "halted", "paused"} {
		others += fmt.Sprintf("  %s: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n", name)
	}
	processes := others + stdoutProcess
	insert(t, onPrimary, 1)
	require.NoError(t, drain(t, configure(t, primary.URL(), processes)))
	exec(t, onPrimary, "DELETE FROM od.cursor_event WHERE process_name = 'a'") // as that of a program, of which no worker is seen
	exec(t, onPrimary, `UPDATE od.cursor SET failed_position = position, failed_record_id = '1', failed_attempts = 1, first_failed_at = now(), last_failed_at = now(),
		next_attempt_at = now() + interval '1 hour', failed_error = 'answered 503', failed_class = 'transient' WHERE process_name = 'failing'`)
	exec(t, onPrimary, `UPDATE od.cursor SET state = process_name WHERE process_name IN ('halted', 'paused')`)
	untilTrue(t, onStandby, "SELECT count(*) = 2 FROM od.cursor WHERE state <> 'running'")
	exec(t, onStandby, "SELECT pg_promote(true, 60)")

	working(t, configure(t, standby.URL(), others))
	config := configure(t, standby.URL(), processes)
	require.Eventually(t, func() bool {
		_, _, document := status(t, config, "")
		return document["state"] == "failing"
	}, patience, 20*time.Millisecond)
	all, text, _ := status(t, config, "a")
	require.Len(t, all, 1)
	require.Nil(t, all[0].Hold, text)
	require.Len(t, all[0].Also, 1, text)
	require.Equal(t, daemon.HoldPromoted, all[0].Also[0].Kind)

	begin(t, onStandby, "INSERT INTO public.bookings DEFAULT VALUES")
	insert(t, onStandby, 1)
	all, text, _ = status(t, config, "")
	kinds := map[string]daemon.HoldKind{"a": daemon.HoldWriter, "failing": daemon.HoldFailing, "halted": daemon.HoldHalted, "paused": daemon.HoldPaused}
	for _, s := range all {
		require.Equal(t, kinds[s.Process], s.Hold.Kind, text)
		require.Len(t, s.Also, 1, text)
		require.Equal(t, daemon.HoldPromoted, s.Also[0].Kind)
		require.Regexp(t, `(?m)^`+s.Process+`: a standby was promoted since its last change of worker .timeline 1, now 2., and workers may still deliver from the old primary; next: fence the old primary`, text)
	}
}

// TestStatus_APreparedTransactionMayHaveBegunBeforeWhatWaits: what is known of it is when it was prepared. Status took that for its
// beginning, and said that it inserts nothing before the record, or nothing at all.
func TestStatus_APreparedTransactionMayHaveBegunBeforeWhatWaits(t *testing.T) {
	t.Parallel()
	pool := database(t)
	address, called, release := silent(t)
	gid := pool.Config().ConnConfig.Database
	importer := session(t, "BEGIN; INSERT INTO public.bookings DEFAULT VALUES")
	waitingRecord(t, pool)
	exec(t, pool, "UPDATE public.bookings SET created_at = clock_timestamp()") // after the importer's
	exec(t, pool, "SELECT pg_sleep(0.1)")                                      // more than the latency
	exec(t, importer, "PREPARE TRANSACTION '"+gid+"'")
	t.Cleanup(func() { _, _ = pool.Exec(context.Background(), "ROLLBACK PREPARED '"+gid+"'") })

	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+address+"'}}, start: beginning, poll: 20ms}\n")
	const may = `by the prepared transaction "\w+" .*: when it began is not recorded, so it may have inserted before them; next: wait until it ends`
	all, text, _ := status(t, config, "")
	require.Equal(t, daemon.HoldWriter, all[0].Hold.Kind)
	require.Regexp(t, `(?m)^a: records are held back `+may+`, or end it: COMMIT PREPARED or ROLLBACK PREPARED '`, text)
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "when it began is not recorded", "ROLLBACK PREPARED"})

	exec(t, pool, "ROLLBACK PREPARED '"+gid+"'")
	working(t, config)
	t.Cleanup(release)
	waittest.Receive(t, called, "the receiver is called")
	exec(t, pool, "BEGIN; INSERT INTO public.bookings DEFAULT VALUES; PREPARE TRANSACTION '"+gid+"'")
	all, text, _ = status(t, config, "") // a worker delivers what is first
	require.Len(t, all[0].Holding, 1, text)
	require.Regexp(t, `(?m)^a: newer records may be held back `+may+`$`, text)
}

// slow is a receiver that answers the n-th record of a lease of process a when the lease is n times 300 ms old, by the
// database's clock. So a lease of 100 records is as old on any machine. It hangs from when it is told to until it is
// released.
func slow(t *testing.T, pool *pgxpool.Pool, perLease int64) (address string, hang, release func()) {
	t.Helper()
	var hangs atomic.Bool
	var calls atomic.Int64
	over := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			keepWaiting(t, over)
			return // at once: the worker ends then, and has a second for it
		}
		n := (calls.Add(1)-1)%perLease + 1
		const waitSQL = "SELECT pg_sleep_until(max(xact_start) + $1 * interval '300 ms') FROM pg_stat_activity WHERE application_name = 'ordered-dispatcher lease a'"
		if _, err := pool.Exec(r.Context(), waitSQL, n); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL, func() { hangs.Store(true) }, func() { close(over) }
}

// TestStatus_SeveralCallsOfOneLeaseAreNoLongCall: the time since the last checkpoint was taken for the length of one call, and a slow
// but healthy receiver with many records in a checkpoint was said to hang.
func TestStatus_SeveralCallsOfOneLeaseAreNoLongCall(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	address, hang, release := slow(t, pool, 100)
	config := configure(t, server.URL(), "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+address+"', timeout: 50s}}, batch: 100, checkpoint: 100, start: beginning, poll: 20ms}\n")
	asked := support(t, pool, config)
	insert(t, pool, 300)
	working(t, config)
	t.Cleanup(release)
	untilTrue(t, pool, "SELECT bool_or(clock_timestamp() - xact_start > '6 seconds') FROM pg_stat_activity WHERE application_name = 'ordered-dispatcher lease a'")
	for _, c := range []daemon.Config{config, asked} { // and one that sees no times
		all, text, _ := status(t, c, "")
		require.Nil(t, all[0].Hold, text)
		require.NotRegexp(t, "a call of the receiver|has the cursor's row", problems(doctor(t, c)))
	}
	hang()
	_, text, _ := statusUntil(t, config, isHeld)
	require.Regexp(t, `(?m)^a: a call of the receiver has been running since 2\S+Z, by worker `, text)
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "a call of the receiver has been running since", ""})
}

// TestStatus_LooksAtManyTablesAtOnce: each one that was locked cost five seconds, one after another.
func TestStatus_LooksAtManyTablesAtOnce(t *testing.T) {
	t.Parallel()
	const many = 10
	pool := database(t)
	insert(t, pool, 1)
	var processes string
	for i := range many {
		processes += fmt.Sprintf("  p%d: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n", i)
	}
	config := configure(t, pgtest.URL(t), processes)
	require.NoError(t, drain(t, config))
	left(t, pool)
	tx := begin(t, pool, "LOCK TABLE public.bookings IN ACCESS EXCLUSIVE MODE")
	done := make(chan []daemon.Status, 1)
	go func() {
		all, _, _ := status(t, config, "")
		done <- all
	}()
	// All of them wait together.
	untilTrue(t, pool, "SELECT count(DISTINCT l.pid) = $1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()", many)
	require.NoError(t, tx.Rollback(t.Context()))
	for _, s := range waittest.Receive(t, done, "the status is read") {
		require.Empty(t, s.Problem)
	}
}

// TestStatus_WaitsForNoLatencyWhereRecordsHaveNoTime: order by id has none, and status slept for it.
func TestStatus_WaitsForNoLatencyWhereRecordsHaveNoTime(t *testing.T) {
	t.Parallel()
	pool, config := fixture(t, "  a: {source: {table: public.bookings, order: id, latency: 1m}, sink: {stdout: {}}, poll: 20ms}\n")
	exec(t, pool, "ALTER TABLE public.bookings DROP created_at")
	insert(t, pool, 1)
	created(t, pool)
	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: config})
	require.NoError(t, err)
	defer reader.Close()
	pauses := reader.KeepPauses()
	all, err := reader.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, daemon.HoldNobody, all[0].Hold.Kind)
	require.Len(t, *pauses, 1)
	require.Less(t, (*pauses)[0], time.Second)
}
