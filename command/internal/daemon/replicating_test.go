package daemon_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded: PostgreSQL would answer it as committed, and a receiver
// could have what the next primary does not.
func TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, s := ownServer(t)
	insert(t, pool, 1)
	config := configure(t, server.URL(), stdoutProcess)
	const keep = "do not end the session: what it has committed would be lost in a failover"

	over := withoutAStandby(t, pool, func(ctx context.Context) {
		_, _ = pool.Exec(ctx, "INSERT INTO public.bookings DEFAULT VALUES")
	})
	_, text, _ := statusUntil(t, config, func(s daemon.Status) bool { return len(s.Holding) == 1 && s.Holding[0].Replicating })
	require.Contains(t, text, "whose COMMIT waits for a synchronous standby; next: "+keep)
	require.NotContains(t, text, "pg_terminate_backend")
	requireHeld(t, doctor(t, config), "records of public.bookings are held back by pid", keep)

	over()
	over = withoutAStandby(t, pool, func(ctx context.Context) {
		if l, err := s.Acquire(ctx, "a"); err == nil {
			l.Release()
		}
	})
	_, text, _ = statusUntil(t, config, isHeldBy(daemon.HoldLocked))
	require.Regexp(t, `(?m)^a: pid \d+ .*, whose COMMIT waits for a synchronous standby: its worker waits for 30 s, looks whether it took place, and goes on; .*; next: `+keep, text)
	require.NotContains(t, text, "receiver")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Warn, "whose COMMIT waits for a synchronous standby: its worker waits for 30 s, looks whether it took place, and goes on; ", keep})
	over()
}

// ownServer has the cursor of process a, and settings that may be changed.
func ownServer(t *testing.T) (*pglocal.Server, *pgxpool.Pool, *cursor.Store) {
	t.Helper()
	server := pgtest.Server(t, nil)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	migrate(t, pool, server.URL())
	return server, pool, created(t, pool)
}

// withoutAStandby has commits wait for a standby that is not there, and calls f over and over until
// over is called: a session hears of the setting before a command.
func withoutAStandby(t *testing.T, pool *pgxpool.Pool, f func(context.Context)) (over func()) {
	t.Helper()
	exec(t, pool, "ALTER SYSTEM SET synchronous_standby_names = 'away'")
	exec(t, pool, "SELECT pg_reload_conf()")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			f(ctx)
		}
	}()
	return func() {
		exec(t, pool, "ALTER SYSTEM RESET synchronous_standby_names")
		exec(t, pool, "SELECT pg_reload_conf()")
		cancel()
		waittest.Receive(t, done, "the last call ends")
	}
}

// TestStatus_AStrangersCommitThatWaitsForAStandbyIsNotToBeEnded: the advice began with "end its transaction, or:".
func TestStatus_AStrangersCommitThatWaitsForAStandbyIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, s := ownServer(t)
	over := withoutAStandby(t, pool, func(ctx context.Context) {
		_, _ = pool.Exec(ctx, "SELECT FROM od.cursor FOR UPDATE")
	})
	config := configure(t, server.URL(), stdoutProcess)
	const keep = "do not end the session: what it has committed would be lost in a failover"
	var text string
	require.Eventually(t, func() bool {
		all, err := s.Lockers(t.Context())
		require.NoError(t, err)
		return len(all) == 1 && all[0].Replicating
	}, patience, 20*time.Millisecond)
	_, text, _ = status(t, config, "a")
	require.Regexp(t, `(?m)^a: the cursor's row is locked by pid \d+ .*, whose COMMIT waits for a synchronous standby: no worker can deliver; next: `+keep, text)
	requireHeld(t, doctor(t, config), "whose COMMIT waits for a synchronous standby, and no worker can deliver until that ends", keep)

	_, err := operator.New(s).Pause(t.Context(), "a", cursor.Decision{Actor: "me", Timeout: 50 * time.Millisecond})
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.ErrorContains(t, err, "whose COMMIT waits for a synchronous standby; "+keep)
	requireStranger(t, s, "which is no worker; "+keep)
	over()
}

// requireStranger waits until a worker is refused the row because of a stranger, in these words.
func requireStranger(t *testing.T, s *cursor.Store, words string) {
	t.Helper()
	var stranger *cursor.StrangerError
	require.Eventually(t, func() bool {
		_, err := s.Acquire(t.Context(), "a")
		return errors.As(err, &stranger)
	}, patience, 20*time.Millisecond)
	require.ErrorContains(t, stranger, words)
}

// TestStatus_ADatabaseThatIsSlowIsNotTheReceiver: a command of the worker's session goes on.
func TestStatus_ADatabaseThatIsSlowIsNotTheReceiver(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool)
	exec(t, pool, `CREATE FUNCTION od.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE UPDATE ON od.cursor FOR EACH ROW WHEN (OLD.position <> NEW.position) EXECUTE FUNCTION od.slow()`)
	go func() { // the rehearsal of an advance
		if l, err := s.Acquire(t.Context(), "a"); err == nil {
			l.Release()
		}
	}()
	config := configure(t, pgtest.URL(t), stdoutProcess)
	_, text, _ := statusUntil(t, config, func(s daemon.Status) bool { return s.Hold != nil && s.Hold.Kind != daemon.HoldNobody })
	require.Regexp(t, `(?m)^a: its worker .* waits for the database, and not for the receiver: a command of pid \d+ .* has been running for`, text)
}

// grantee is the configuration of a role that has what `grants` prints, and no more.
func grantee(t *testing.T, pool *pgxpool.Pool, config daemon.Config) daemon.Config {
	t.Helper()
	exec(t, pool, `CREATE ROLE dispatcher LOGIN PASSWORD 'secret'`)
	exec(t, pool, grants(t, config, "dispatcher"))
	config.Database = pgtest.As(t, config.Database, "dispatcher", "secret")
	return config
}

// keepHidden is the advice to a role that cannot see what a session waits for.
const keepHidden = "do not end the session unless you know that it is not a COMMIT that waits for a synchronous standby: what such a COMMIT has committed " +
	`would be lost in a failover. Role "dispatcher" cannot see it. To see it: GRANT pg_read_all_stats TO "dispatcher"`

// requireNoEnd: nothing that a person is told to do ends a session.
func requireNoEnd(t *testing.T, text string, findings []daemon.Finding) {
	t.Helper()
	require.NotContains(t, text, "pg_terminate_backend")
	require.NotContains(t, fixes(findings), "pg_terminate_backend")
}

// TestStatus_ACommitThatTheRoleCannotSeeIsNotToBeEnded: PostgreSQL hides what sessions of other roles wait for. The role of
// `grants` was told to end a COMMIT that waits for a standby.
func TestStatus_ACommitThatTheRoleCannotSeeIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	insert(t, pool, 1)
	config := grantee(t, pool, configure(t, server.URL(), stdoutProcess))
	producer := func(ctx context.Context) { _, _ = pool.Exec(ctx, "INSERT INTO public.bookings DEFAULT VALUES") }

	over := withoutAStandby(t, pool, producer)
	waiting(t, pool)
	all, text, _ := status(t, config, "a")
	require.Len(t, all[0].Holding, 1)
	require.Contains(t, text, "which may be a COMMIT that waits for a synchronous standby; next: "+keepHidden)
	findings := doctor(t, config)
	requireHeld(t, findings, "records of public.bookings are held back by pid", keepHidden)
	requireNoEnd(t, text, findings)

	exec(t, pool, `BEGIN; SET LOCAL synchronous_commit = local; GRANT pg_read_all_stats TO dispatcher; COMMIT`)
	_, text, _ = status(t, config, "a")
	require.Contains(t, text, "whose COMMIT waits for a synchronous standby; next: "+cursor.KeepReplicating)
	over()
}

// waiting returns when a COMMIT waits for a standby.
func waiting(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	untilTrue(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

// TestStatus_ALockersCommitThatTheRoleCannotSeeIsNotToBeEnded: the same of the lock of the cursor's row. The worker's log and
// the errors of operators say it in the same words.
func TestStatus_ALockersCommitThatTheRoleCannotSeeIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	config := grantee(t, pool, configure(t, server.URL(), stdoutProcess))
	over := withoutAStandby(t, pool, func(ctx context.Context) { _, _ = pool.Exec(ctx, "SELECT FROM od.cursor FOR UPDATE") })
	waiting(t, pool)

	_, text, _ := status(t, config, "a")
	require.Regexp(t, `(?m)^a: the cursor's row is locked by pid \d+ .*, which may be a COMMIT that waits for a synchronous standby: no worker can deliver; next: `+keepHidden, text)
	findings := doctor(t, config)
	requireHeld(t, findings, "which may be a COMMIT that waits for a synchronous standby, and no worker can deliver until that ends", keepHidden)
	requireNoEnd(t, text, findings)

	s, err := cursor.NewStore(pgtest.Pool(t, config.Database, pgtest.PoolConfig{}), cursor.Config{Schema: schema})
	require.NoError(t, err)
	_, err = operator.New(s).Pause(t.Context(), "a", cursor.Decision{Actor: "me", Timeout: 50 * time.Millisecond})
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.ErrorContains(t, err, "which may be a COMMIT that waits for a synchronous standby; "+keepHidden)
	requireStranger(t, s, "which is no worker; "+keepHidden)
	over()
}

// TestStatus_AnOperatorsCommitThatWaitsForAStandbyIsSaid: status said nothing of it to the role of `grants`, and took it for
// the worker's where it was seen.
func TestStatus_AnOperatorsCommitThatWaitsForAStandbyIsSaid(t *testing.T) {
	t.Parallel()
	server, pool, s := ownServer(t)
	whole := configure(t, server.URL(), stdoutProcess)
	config := grantee(t, pool, whole)
	over := withoutAStandby(t, pool, func(ctx context.Context) {
		_, _ = operator.New(s).Pause(ctx, "a", cursor.Decision{Actor: "me"})
		_, _ = operator.New(s).Resume(ctx, "a", cursor.Decision{Actor: "me"})
	})
	waiting(t, pool)

	all, text, _ := status(t, config, "a")
	require.NotNil(t, all[0].Hold)
	require.Equal(t, daemon.HoldLocked, all[0].Hold.Kind)
	require.Regexp(t, `(?m)^a: the cursor's row is locked by an operator's session, pid \d+ .*, which may be a COMMIT that waits for a synchronous standby: no worker can deliver; next: `+keepHidden, text)
	findings := doctor(t, config)
	requireHeld(t, findings, "its row is locked by an operator's session, pid", keepHidden)
	requireNoEnd(t, text, findings)

	_, text, _ = statusUntil(t, whole, isHeldBy(daemon.HoldLocked))
	require.Regexp(t, `(?m)^a: the cursor's row is locked by an operator's session, pid \d+ .*, whose COMMIT waits for a synchronous standby: no worker can deliver; next: `+cursor.KeepReplicating, text)
	require.NotContains(t, text, "its worker")
	findings = doctor(t, whole)
	requireHeld(t, findings, "its row is locked by an operator's session, pid", cursor.KeepReplicating)
	requireNoEnd(t, text, findings)
	over()
}

// TestStatus_APreparedTransactionMayBeCommitted: while its COMMIT PREPARED waits for a standby it looks like a forgotten one, and was to
// be rolled back.
func TestStatus_APreparedTransactionMayBeCommitted(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	exec(t, pool, "BEGIN; INSERT INTO public.bookings DEFAULT VALUES; PREPARE TRANSACTION 'tpc'")
	insert(t, pool, 1)
	exec(t, pool, "CREATE TABLE public.other ()")
	over := withoutAStandby(t, pool, func(ctx context.Context) { _, _ = pool.Exec(ctx, "INSERT INTO public.other DEFAULT VALUES") })
	defer over()
	waiting(t, pool) // from here on every COMMIT waits
	go func() { _, _ = pool.Exec(t.Context(), "COMMIT PREPARED 'tpc'") }()
	untilTrue(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'COMMIT PREPARED%'")
	config := configure(t, server.URL(), stdoutProcess)
	const first = "look first, as a superuser or with pg_read_all_stats, whether its COMMIT PREPARED waits for a synchronous standby: " +
		"SELECT pid, query FROM pg_stat_activity WHERE wait_event = 'SyncRep'. If it does, it is committed: do not end the session: "
	_, text, _ := status(t, config, "a")
	require.Contains(t, text, `a: records are held back by the prepared transaction "tpc"`)
	require.Contains(t, text, "whose COMMIT PREPARED may be waiting for a synchronous standby; next: "+first)
	requireHeld(t, doctor(t, config), "whose COMMIT PREPARED may be waiting for a synchronous standby", first)
}

// TestGrants_NameTheRightThatShowsWhatACommitWaitsFor: it shows the statements of all sessions, too, so it is not granted
// without a decision.
func TestGrants_NameTheRightThatShowsWhatACommitWaitsFor(t *testing.T) {
	t.Parallel()
	server, pool, _ := ownServer(t)
	config := configure(t, server.URL(), stdoutProcess)
	require.NotContains(t, grants(t, config, "dispatcher"), "pg_read_all_stats")
	exec(t, pool, "ALTER ROLE postgres SET synchronous_commit = local") // grants writes, and rolls back
	over := withoutAStandby(t, pool, func(context.Context) { time.Sleep(time.Millisecond) })
	require.Eventually(t, func() bool {
		return strings.Contains(grants(t, config, "dispatcher"), "pg_read_all_stats")
	}, patience, 20*time.Millisecond)
	require.Contains(t, grants(t, config, "dispatcher"), `-- GRANT pg_read_all_stats TO "dispatcher";`)
	over()
}
