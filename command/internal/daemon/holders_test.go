package daemon_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// support is the configuration of a role that has what `grants` prints for an operator beside the role of
// the workers, and no more.
func support(t *testing.T, pool *pgxpool.Pool, config daemon.Config) daemon.Config {
	t.Helper()
	exec(t, pool, `CREATE ROLE support LOGIN PASSWORD 'secret'; CREATE ROLE workers`)
	var text buffer
	require.NoError(t, daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: "workers", Operator: "support"}))
	exec(t, pool, text.String())
	address, err := url.Parse(config.Database)
	require.NoError(t, err)
	address.User = url.UserPassword("support", "secret")
	config.Database = address.String()
	return config
}

// older returns when the records that wait are older than a call of the receiver lasts.
func older(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, "SELECT pg_sleep_until(max(created_at) + interval '5.1 seconds') FROM public.bookings")
}

// hung is a worker whose receiver does not answer, of a server with a role support.
func hung(t *testing.T) (pool *pgxpool.Pool, worker, asked daemon.Config) {
	t.Helper()
	server, pool, _ := ownServer(t)
	called, release := make(chan struct{}, 100), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-release
	}))
	t.Cleanup(receiver.Close)
	worker = configure(t, server.URL(), "  a: {source: {table: public.bookings}, sink: {webhook: {url: '"+receiver.URL+"', timeout: 50s}}, start: beginning, poll: 20ms}\n")
	asked = support(t, pool, worker)
	insert(t, pool, 1)
	working(t, worker)
	t.Cleanup(func() { close(release) })
	<-called
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
	const hidden = `and nothing was written there since 2\S+Z. Since when, and whether it waits for the receiver or for the database, is hidden from role "support"`
	var document map[string]any
	require.Eventually(t, func() bool { // and the row was written when the worker began
		all, text, document = status(t, asked, "")
		return all[0].Hold != nil
	}, patience, 20*time.Millisecond)
	require.Regexp(t, `(?m)^a: its worker .* has the cursor's row, by pid \d+ .application "ordered-dispatcher lease a", .*, `+hidden+
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
	blocker, err := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{ApplicationName: "migration"}).Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = blocker.Rollback(context.Background()) })
	_, err = blocker.Exec(t.Context(), "LOCK TABLE od.dead_letter IN EXCLUSIVE MODE")
	require.NoError(t, err)
	go func() {
		_ = l.PutAside(t.Context(), cursor.DeadLetter{Position: "at.int:2026-01-01T00:00:00.000000Z/00000000000000000007", Table: "t", RecordID: "7",
			Failure: cursor.Failure{RecordID: "7", Attempts: 1, First: time.Now(), Last: time.Now(), Error: "x"}})
	}()
	var text string
	require.Eventually(t, func() bool {
		var all []daemon.Status
		all, text, _ = status(t, asked, "")
		return all[0].Hold != nil && all[0].Hold.Kind == daemon.HoldLocked
	}, patience, 20*time.Millisecond)
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
	require.Eventually(t, func() bool {
		all, _, _ := status(t, asked, "")
		return all[0].Hold != nil && all[0].Hold.Kind == daemon.HoldHidden
	}, patience, 20*time.Millisecond)
	_, text, _ := status(t, asked, "")
	require.Regexp(t, `(?m)^a: its worker .*, which may be a COMMIT that waits for a synchronous standby, and nothing was written there since .*; next: do not end the session unless`, text)
	require.NotContains(t, text, "pg_terminate_backend")
}

// TestStatus_AnOperatorsSessionOfWhichTheTimeIsHiddenIsNotToBeEnded: it may be a decision like others.
func TestStatus_AnOperatorsSessionOfWhichTheTimeIsHiddenIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	asked := support(t, pool, configure(t, server.URL(), stdoutProcess))
	tx, err := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{ApplicationName: cursor.ApplicationOperator + "a"}).Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), "SELECT FROM od.cursor FOR UPDATE")
	require.NoError(t, err)
	_, text, _ := status(t, asked, "")
	require.Regexp(t, `(?m)^a: the cursor's row is locked by an operator's session, pid \d+ .*: no worker can deliver; next: wait until it ends; `+
		`since when it is open is hidden from role "support"; to see it: GRANT pg_read_all_stats TO "support"$`, text)
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
	require.NoError(t, <-done)
}
