package daemon_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded: PostgreSQL would answer it as committed, and a receiver
// could have what the next primary does not.
func TestStatus_ACommitThatWaitsForAStandbyIsNotToBeEnded(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	migrate(t, pool, server.URL())
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "a", "")
	require.NoError(t, err)
	insert(t, pool, 1)
	exec(t, pool, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	exec(t, pool, "SELECT pg_reload_conf()")
	config := configure(t, server.URL(), stdoutProcess)
	const keep = "do not end the session: what it has committed would be lost in a failover"

	go func() { // until a session has heard of it
		for err := error(nil); err == nil; {
			_, err = pool.Exec(t.Context(), "INSERT INTO public.bookings DEFAULT VALUES")
		}
	}()
	require.Eventually(t, func() bool {
		all, _, _ := status(t, config, "a")
		return len(all[0].Holding) == 1 && all[0].Holding[0].Replicating
	}, patience, 20*time.Millisecond)
	all, text, _ := status(t, config, "a")
	require.Contains(t, text, "whose COMMIT waits for a synchronous standby; next: "+keep)
	require.NotContains(t, text, "pg_terminate_backend")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "records of public.bookings are held back by pid", keep})

	go func() { _, _ = s.Acquire(t.Context(), "a") }()
	require.Eventually(t, func() bool {
		all, text, _ = status(t, config, "a")
		return all[0].Hold != nil && all[0].Hold.Kind == daemon.HoldLocked
	}, patience, 100*time.Millisecond)
	require.Regexp(t, `(?m)^a: pid \d+ .*, whose COMMIT waits for a synchronous standby: nothing more is delivered until then; next: `+keep, text)
	require.NotContains(t, text, "receiver")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Warn, "whose COMMIT waits for a synchronous standby: its worker delivers nothing more until then", keep})
	exec(t, pool, "ALTER SYSTEM RESET synchronous_standby_names")
	exec(t, pool, "SELECT pg_reload_conf()")
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
