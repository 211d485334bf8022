package daemon_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// support is the configuration of a role that has what `grants` prints for an operator beside the role of
// the workers, and no more.
func support(t *testing.T, pool *pgxpool.Pool, config daemon.Config) daemon.Config {
	t.Helper()
	exec(t, pool, `CREATE ROLE support LOGIN PASSWORD 'secret'; CREATE ROLE workers`)
	var text buffer
	require.NoError(t, daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: "workers", Operator: "support"}))
	exec(t, pool, text.String())
	config.Database = pgtest.As(t, config.Database, "support", "secret")
	return config
}

// older returns when the records that wait are older than a call of the receiver lasts.
func older(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, "SELECT pg_sleep_until(max(created_at) + interval '5.1 seconds') FROM public.bookings")
}

// silent is a receiver that answers no call before it is released. Each call is in the channel.
func silent(t testing.TB) (address string, called <-chan struct{}, release func()) {
	t.Helper()
	calls, released := make(chan struct{}, 100), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls <- struct{}{}
		keepWaiting(t, released)
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL, calls, func() { close(released) }
}

// hung is a worker whose receiver does not answer, of a server with a role support.
func hung(t *testing.T) (pool *pgxpool.Pool, worker, asked daemon.Config) {
	t.Helper()
	server, pool, _ := ownServer(t)
	address, called, release := silent(t)
	worker = configure(t, server.URL(), "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+address+"', timeout: 50s}}, start: beginning, poll: 20ms}\n")
	asked = support(t, pool, worker)
	insert(t, pool, 1)
	working(t, worker)
	t.Cleanup(release)
	waittest.Receive(t, called, "the receiver is called")
	return pool, worker, asked
}

// TestStatus_AHangThatTheRoleCannotSeeIsSaid: since when a worker has its row is hidden from the role that `grants` prints for
// operators, and status said nothing but `running` while the receiver hung.
func TestStatus_AHangThatTheRoleCannotSeeIsSaid(t *testing.T) {
	t.Parallel()
	pool, worker, asked := hung(t)
	all, text, _ := status(t, asked, "")
	require.Nil(t, all[0].Hold, "a call of a moment: %s", text)

	older(t, pool)
	const hidden = `and has written nothing there since 2\S+Z. Role "support" cannot see since when it has the row, or whether the worker waits for the receiver or the database`
	all, text, document := statusUntil(t, asked, isHeld) // and the row was written when the worker began
	require.Regexp(t, `(?m)^a: its worker .* has the cursor's row, in session pid \d+ .application "ordered-dispatcher lease a", .*, `+hidden+
		`; next: ask again as a superuser, or after GRANT pg_read_all_stats TO "support"$`, text)
	require.Equal(t, daemon.HoldHidden, all[0].Hold.Kind)
	require.Equal(t, "hidden", document["hold"].(map[string]any)["kind"])
	findings := doctor(t, grantee(t, pool, worker))
	f := requireFinding(t, findings, daemon.Finding{"a", daemon.Note, "its worker", `ask again as a superuser, or after GRANT pg_read_all_stats TO "dispatcher"`})
	require.Regexp(t, strings.Replace(hidden, "support", "dispatcher", 1), f.Problem)
	requireNoEnd(t, text, findings)

	all, _, _ = status(t, worker, "")
	require.Equal(t, daemon.HoldSink, all[0].Hold.Kind, "a role that sees it")
	exec(t, pool, "GRANT pg_read_all_stats TO support")
	all, _, _ = status(t, asked, "")
	require.Equal(t, daemon.HoldSink, all[0].Hold.Kind, "as it said")
}

// TestStatus_AHangBehindManyCallsIsSaidAfterMinutes: with 1000 calls for each checkpoint nothing was said for more than an hour to
// a role that does not see times.
func TestStatus_AHangBehindManyCallsIsSaidAfterMinutes(t *testing.T) {
	t.Parallel()
	server, pool, s := ownServer(t)
	asked := support(t, pool, configure(t, server.URL(), "  a: {source: {table: public.bookings}, sink: {webhook: {url: 'http://127.0.0.1:1'}}, batch: 1000, checkpoint: 1000}\n"))
	exec(t, pool, "ALTER TABLE od.cursor DISABLE TRIGGER set_updated_at; INSERT INTO public.bookings (created_at) VALUES (now() - interval '1 hour')")
	for _, c := range []struct {
		minutes int
		hidden  bool
	}{{4, false}, {6, true}} {
		exec(t, pool, "UPDATE od.cursor SET updated_at = now() - make_interval(mins => $1)", c.minutes)
		l, err := s.Acquire(t.Context(), "a")
		require.NoError(t, err)
		all, text, _ := status(t, asked, "")
		l.Release()
		require.Equal(t, c.hidden, all[0].Hold != nil && all[0].Hold.Kind == daemon.HoldHidden, "after %d minutes: %s", c.minutes, text)
	}
}

// TestStatus_AWorkerThatWaitsForALockIsSaidToARoleThatCannotSeeIt: which session has a lock needs no right.
func TestStatus_AWorkerThatWaitsForALockIsSaidToARoleThatCannotSeeIt(t *testing.T) {
	t.Parallel()
	server, pool, s := ownServer(t)
	asked := support(t, pool, configure(t, server.URL(), stdoutProcess))
	insert(t, pool, 1)
	older(t, pool)
	l, err := s.Acquire(t.Context(), "a")
	require.NoError(t, err)
	t.Cleanup(l.Release)
	begin(t, pgtest.Pool(t, server.URL(), pgtest.PoolConfig{ApplicationName: "migration"}), "LOCK TABLE od.dead_letter IN EXCLUSIVE MODE")
	go func() {
		_ = l.PutAside(t.Context(), cursor.DeadLetter{Position: "at.int:2026-01-01T00:00:00.000000Z/00000000000000000007", Table: "t", RecordID: "7",
			Failure: cursor.Failure{RecordID: "7", Attempts: 1, First: time.Now(), Last: time.Now(), Error: "x"}})
	}()
	_, text, _ := statusUntil(t, asked, isHeldBy(daemon.HoldLocked))
	require.Regexp(t, `(?m)^a: its worker .* waits for a lock that pid \d+ .application "migration", .* has: nothing is written down or delivered; next: end its transaction, or: `, text)
}

// TestStatus_AWorkersCommitThatTheRoleCannotSeeIsSaid: that of a worker that waits for a standby.
func TestStatus_AWorkersCommitThatTheRoleCannotSeeIsSaid(t *testing.T) {
	t.Parallel()
	server, pool, s := ownServer(t)
	asked := support(t, pool, configure(t, server.URL(), stdoutProcess))
	insert(t, pool, 1)
	older(t, pool)
	over := withoutAStandby(t, pool, func(ctx context.Context) {
		if l, err := s.Acquire(ctx, "a"); err == nil {
			l.Release()
		}
	})
	defer over()
	waiting(t, pool)
	_, text, _ := statusUntil(t, asked, isHeldBy(daemon.HoldHidden))
	require.Regexp(t, `(?m)^a: its worker .*, which may be a COMMIT that waits for a synchronous standby, and has written nothing there since .*; next: do not end the session unless`, text)
	require.NotContains(t, text, "pg_terminate_backend")
}

// TestStatus_AnOperatorsSessionOfWhichTheTimeIsHiddenIsNotToBeEnded: it may be a decision like others.
func TestStatus_AnOperatorsSessionOfWhichTheTimeIsHiddenIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	asked := support(t, pool, configure(t, server.URL(), stdoutProcess))
	begin(t, pgtest.Pool(t, server.URL(), pgtest.PoolConfig{ApplicationName: cursor.ApplicationOperator + "a"}), "SELECT FROM od.cursor FOR UPDATE")
	_, text, _ := status(t, asked, "")
	require.Regexp(t, `(?m)^a: the cursor's row is locked by an operator's session, pid \d+ .*: no worker can deliver; next: wait until it ends; `+
		`role "support" cannot see since when it is open; to see it: GRANT pg_read_all_stats TO "support"$`, text)
	requireNoEnd(t, text, doctor(t, asked))
}

// TestStatus_ASessionThatHasTheRowForAMomentIsNotToBeEnded: a worker has it for a moment before it has its name, and status said to
// end its session.
func TestStatus_ASessionThatHasTheRowForAMomentIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	file := configure(t, server.URL(), "  a: {source: {table: public.bookings}, sink: {webhook: {url: 'http://127.0.0.1:1'}}}\n")
	done, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-stopped:
				done <- nil
				return
			default:
			}
			if _, err := pool.Exec(context.Background(), "BEGIN; SELECT FROM od.cursor FOR UPDATE; SELECT pg_sleep(0.04); COMMIT", pgx.QueryExecModeSimpleProtocol); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 5 {
		all, text, _ := status(t, file, "")
		require.True(t, all[0].Hold == nil || all[0].Hold.Kind != daemon.HoldLocked, text)
	}
	close(stopped)
	require.NoError(t, waittest.Receive(t, done, "the last statement ends"))
}

const pinnedFor = "vacuum removes no newer dead row of this database, and CREATE INDEX CONCURRENTLY may wait for it: the sink's `timeout` and `checkpoint` bound it to "

// TestStatus_SaysWhatACallKeepsVacuumFrom, and for how long it may.
func TestStatus_SaysWhatACallKeepsVacuumFrom(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool)
	lease(t, s)
	exec(t, pool, "SELECT pg_sleep(5.1)")
	xid := pgtest.Value[*string](t, pool, "SELECT backend_xid::text FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)", cursor.ApplicationLease)
	require.NotNil(t, xid, "its transaction id is what vacuum stops at")
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings}, sink: {webhook: {url: 'http://127.0.0.1:1', timeout: 7s}}, checkpoint: 3}\n")
	all, _, _ := statusUntil(t, config, isHeld)            // once the worker has said for how long its call goes on
	require.Contains(t, all[0].Hold.Next, pinnedFor+"41s") // 5 s for a read, three calls of 7 s and 5 s
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "a call of the receiver has been running since ", "see what the receiver does"})
	require.Contains(t, f.Problem, pinnedFor+"41s")
}

// TestDoctor_NamesALeaseThatMayBeOpenForLong, before it is.
func TestDoctor_NamesALeaseThatMayBeOpenForLong(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, "  a: {source: {table: public.bookings}, sink: {webhook: {url: 'http://127.0.0.1:1', timeout: 25s}}, checkpoint: 50}\n")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "a transaction of its lease may be open for 25m5s", "lower the sink's `timeout` or `checkpoint`"})
}

// TestMetrics_ShowALeaseThatIsOpenAndWhoLeads while a call goes on.
func TestMetrics_ShowALeaseThatIsOpenAndWhoLeads(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	arrived, answer := make(chan struct{}, 1), make(chan struct{})
	config := configure(t, pgtest.URL(t), webhookTo(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the request goes unnoticed
		arrived <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	sink := config.Processes[0].Sink.Config.(*webhook.Config)
	sink.Timeout = patience
	m := monitor(t, config)
	waittest.Receive(t, arrived, "the receiver is called")
	require.Positive(t, m.series()["lease_open_seconds"])
	m.until("leads", is(1))
	other := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	other.until("epoch", is(1))
	require.Zero(t, other.series()["leads"])
	require.Zero(t, other.series()["lease_open_seconds"])
	require.EqualValues(t, 5+patience.Seconds()+5, m.series()["lease_open_bound_seconds"])
	close(answer)
	m.until("lease_open_seconds", is(0))
	require.Eventually(t, func() bool { return m.series()["leads"]+other.series()["leads"] == 1 }, patience, 20*time.Millisecond, "the other one may take over by now")
}
