package cursor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// torn is a lease whose network went dead in the middle of a checkpoint: the server
// has the UPDATE, and waits for the rest.
func torn(t *testing.T) *cursor.Lease {
	t.Helper()
	lease, link, _ := linked(t, time.Second)
	found := link.HoldAt("COMMIT")
	go func() { _ = lease.Advance(t.Context(), "p1", 1) }()
	<-found
	require.Eventually(t, func() bool { return unfinished(t) > 0 }, patience, time.Millisecond)
	return lease
}

// unfinished is for how long the server has waited for the rest of the holder's command.
func unfinished(t *testing.T) time.Duration {
	t.Helper()
	lockers, err := store(t, pgtest.Database(t), "c").Lockers(t.Context())
	require.NoError(t, err)
	if len(lockers) == 0 {
		return 0
	}
	return lockers[0].Unfinished
}

// TestAcquire_EndsASessionThatNeverFinishesItsCommand: no time-out of the server applies
// to it, so the next worker would stand by for ever.
func TestAcquire_EndsASessionThatNeverFinishesItsCommand(t *testing.T) {
	t.Parallel()
	torn(t)
	b, err := cursor.NewStore(pgtest.Database(t), cursor.TornAfter(cursor.Config{Schema: schema, Worker: "b", Timeout: time.Second}, 2*time.Second))
	require.NoError(t, err)
	var ended *cursor.TornError
	require.Eventually(t, func() bool {
		_, err := b.Acquire(t.Context(), "sms")
		require.ErrorIs(t, err, cursor.ErrHeld)
		return errors.As(err, &ended)
	}, patience, 10*time.Millisecond)
	require.NoError(t, ended.Err)
	require.Greater(t, ended.Holder.Unfinished, 2*time.Second)
	require.Regexp(t, `^another worker holds the lease: pid \d+ .*; it was ended$`, ended.Error())
	next := takeOver(t, b)
	require.Equal(t, cursor.Position(""), next.Position(), "what it sent was not committed")
}

// TestAcquire_EndsNoSessionInACall: it is idle in its transaction, for as long as the call takes.
func TestAcquire_EndsNoSessionInACall(t *testing.T) {
	t.Parallel()
	pool := database(t)
	lease := acquire(t, created(t, pool, "a"))
	b, err := cursor.NewStore(pool, cursor.TornAfter(cursor.Config{Schema: schema, Worker: "b"}, time.Nanosecond))
	require.NoError(t, err)
	for range 10 {
		_, err = b.Acquire(t.Context(), "sms")
		require.ErrorIs(t, err, cursor.ErrHeld)
		require.NotErrorAs(t, err, new(*cursor.TornError))
	}
	require.NoError(t, lease.Held())
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}

// TestDecision_NamesASessionThatNeverFinishesItsCommand: "wait longer" would be wrong.
func TestDecision_NamesASessionThatNeverFinishesItsCommand(t *testing.T) {
	t.Parallel()
	torn(t)
	d := alice
	d.Timeout = 6 * time.Second
	_, err := operator.New(store(t, pgtest.Database(t), "c")).Pause(t.Context(), "sms", d)
	require.ErrorIs(t, err, cursor.ErrLocked)
	require.Regexp(t, `pid \d+ .* which sent half of a command and then nothing for \ds: .*; a standby worker ends that session, or you do: SELECT pg_terminate_backend\(pid\) FROM pg_stat_activity WHERE pid = \d+ AND xact_start = `, err.Error())
}

// TestAcquire_NamesAStrangerThatHasTheRow: no other worker delivers, so it is no news of the
// routine kind.
func TestAcquire_NamesAStrangerThatHasTheRow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	tx := pgtest.Begin(t, pool, `SELECT FROM dispatch.cursor FOR UPDATE`)
	for range 3 { // it is looked up once, and said each time
		_, err := s.Acquire(t.Context(), "sms")
		require.ErrorIs(t, err, cursor.ErrHeld)
		var stranger *cursor.StrangerError
		require.ErrorAs(t, err, &stranger)
		require.Equal(t, int(tx.Conn().PgConn().PID()), stranger.Holder.PID)
		require.ErrorContains(t, err, fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %d AND xact_start = ", stranger.Holder.PID))
	}
	require.NoError(t, tx.Rollback(t.Context()))
	lease := acquire(t, s)

	_, err := store(t, pool, "b").Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHeld)
	require.NotErrorAs(t, err, new(*cursor.StrangerError))
	lease.Release()
}

// TestAcquire_ASessionThatHasTheRowForAMomentIsNoStranger: workers that take the row one after the other have it before they have
// their names, on a busy machine at two looks in a row. The log said to end the session.
func TestAcquire_ASessionThatHasTheRowForAMomentIsNoStranger(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	done := make(chan error)
	stop := make(chan struct{})
	go func() {
		for {
			if _, err := conn.Exec(context.Background(), `BEGIN; SELECT FROM dispatch.cursor FOR UPDATE; SELECT pg_sleep(0.04); COMMIT`); err != nil {
				done <- err
				return
			}
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
		}
	}()
	for held := 0; held < 5; {
		lease, err := store(t, pool, fmt.Sprint("b", held)).Acquire(t.Context(), "sms")
		if err == nil {
			lease.Release()
			continue
		}
		held++
		require.ErrorIs(t, err, cursor.ErrHeld)
		require.NotErrorAs(t, err, new(*cursor.StrangerError))
	}
	close(stop)
	require.NoError(t, <-done)
}
