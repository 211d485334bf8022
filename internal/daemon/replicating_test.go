package daemon_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
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
	require.Eventually(t, func() bool {
		all, _, _ := status(t, config, "a")
		return len(all[0].Holding) == 1 && all[0].Holding[0].Replicating
	}, patience, 20*time.Millisecond)
	all, text, _ := status(t, config, "a")
	require.Contains(t, text, "whose COMMIT waits for a synchronous standby; next: "+keep)
	require.NotContains(t, text, "pg_terminate_backend")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "records of public.bookings are held back by pid", keep})

	over()
	over = withoutAStandby(t, pool, func(ctx context.Context) {
		if l, err := s.Acquire(ctx, "a"); err == nil {
			l.Release()
		}
	})
	require.Eventually(t, func() bool {
		all, text, _ = status(t, config, "a")
		return all[0].Hold != nil && all[0].Hold.Kind == daemon.HoldLocked
	}, patience, 100*time.Millisecond)
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
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "a", "")
	require.NoError(t, err)
	return server, pool, s
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
		<-done
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
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "whose COMMIT waits for a synchronous standby, and no worker can deliver until that ends", keep})

	_, err := s.Pause(t.Context(), "a", cursor.Decision{Actor: "me", Timeout: 50 * time.Millisecond})
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.ErrorContains(t, err, "whose COMMIT waits for a synchronous standby; "+keep)
	var stranger *cursor.StrangerError
	require.Eventually(t, func() bool {
		_, err = s.Acquire(t.Context(), "a")
		return errors.As(err, &stranger)
	}, patience, 20*time.Millisecond)
	require.ErrorContains(t, stranger, "which is no worker; "+keep)
	over()
}

// TestStatus_ADatabaseThatIsSlowIsNotTheReceiver: a command of the worker's session goes on.
func TestStatus_ADatabaseThatIsSlowIsNotTheReceiver(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "a", "")
	require.NoError(t, err)
	exec(t, pool, `CREATE FUNCTION od.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE UPDATE ON od.cursor FOR EACH ROW WHEN (OLD.position <> NEW.position) EXECUTE FUNCTION od.slow()`)
	go func() { // the rehearsal of an advance
		if l, err := s.Acquire(t.Context(), "a"); err == nil {
			l.Release()
		}
	}()
	config := configure(t, pgtest.URL(t), stdoutProcess)
	var text string
	require.Eventually(t, func() bool {
		var all []daemon.Status
		all, text, _ = status(t, config, "a")
		return all[0].Hold != nil && all[0].Hold.Kind != daemon.HoldNobody
	}, patience, 100*time.Millisecond)
	require.Regexp(t, `(?m)^a: its worker .* waits for the database, and not for the receiver: a command of pid \d+ .* goes on for`, text)
}
