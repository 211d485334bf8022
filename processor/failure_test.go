package processor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestRetry_NothingOvertakesAFailingRecord(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{answer: failing("2", 3, errRefused)}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Checkpoint = 3; quick(c) })
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, []string{"1/1", "2/1", "2/2", "2/3", "2/4", "3/1", "4/1"}, sink.attempts())
	require.Nil(t, row(t, pool).Failure)
}

func TestHalt_NothingBehindAPoisonRecordIsSentUntilAnOperatorDecides(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	sink := &receiver{answer: failing("2", 1, processor.Permanent(errRefused))}
	stop := start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "halted", func() bool { return row(t, pool).State == cursor.Halted })
	halted := row(t, pool)
	require.Equal(t, "2", halted.Failure.RecordID)
	require.Equal(t, "refused", halted.Failure.Error)
	require.Equal(t, cursor.ClassPermanent, halted.Failure.Class)

	// Another process of the same program carries on meanwhile.
	other := &receiver{}
	require.NoError(t, process(t, pool, processor.Each(other), func(c *processor.Config) { c.Process = "email" }).Drain(t.Context()))
	delivered(t, other.got, 4)
	require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())

	exec(t, pool, `UPDATE dispatch.cursor SET state = 'running' WHERE process_name = 'sms'`)
	eventually(t, "all delivered", func() bool { return sink.calls() == 5 })
	require.Equal(t, []string{"1/1", "2/1", "2/2", "3/1", "4/1"}, sink.attempts())
	require.NoError(t, stop())
}

func TestHalt_AfterSoManyAttempts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	sink := &receiver{answer: failing("1", 1000, errRefused)}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) { quick(c); c.Retry.Attempts = 4 })
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.Equal(t, []string{"1/1", "1/2", "1/3", "1/4"}, sink.attempts())
	require.Equal(t, 4, halt.Failure.Attempts)
	require.Equal(t, cursor.ClassTransient, halt.Failure.Class)
}

func TestHalt_OnATimeoutOnlyWhereItsOutcomeMatters(t *testing.T) {
	t.Parallel()
	for name, halts := range map[string]bool{"halt": true, "retry": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 1)
			sink := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
				if d.Attempt > 1 {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
				quick(c)
				c.Timeout, c.HaltOnTimeout = 20*time.Millisecond, halts
			})
			err := p.Drain(t.Context())
			if halts {
				require.ErrorAs(t, err, new(*processor.HaltError))
				require.Equal(t, []string{"1/1"}, sink.attempts())
			} else {
				require.NoError(t, err)
				require.Equal(t, []string{"1/1", "1/2"}, sink.attempts())
			}
		})
	}
}

// TestRetry_ALongDelayIsWaitedOutWithoutTheLeaseByWhicheverWorker: the failure
// stands in the row, and the back-off goes on from there.
func TestRetry_ALongDelayIsWaitedOutWithoutTheLeaseByWhicheverWorker(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	sink := &receiver{answer: failing("1", 1, processor.RetryAfter(errRefused, 1500*time.Millisecond))}
	config := func(c *processor.Config) { quick(c); c.Poll = 20 * time.Millisecond }
	stop := start(t, process(t, pool, processor.Each(sink), config))
	eventually(t, "the failure stands in the row", func() bool { return row(t, pool).Failure != nil })
	failed := row(t, pool).Failure
	require.Equal(t, 1, failed.Attempts)
	require.Greater(t, failed.Wait, 500*time.Millisecond)
	lease, err := store(t, pool).Acquire(t.Context(), "sms")
	require.NoError(t, err, "the lease is free")
	lease.Release()
	require.NoError(t, stop())

	other := &receiver{}
	start(t, process(t, pool, processor.Each(other), config))
	eventually(t, "the other worker carries on", func() bool { return other.calls() == 2 })
	require.Equal(t, []string{"1/2", "2/1"}, other.attempts())
	require.GreaterOrEqual(t, time.Since(failed.Last), 1500*time.Millisecond)
}

// TestAdvance_IsTriedAgainAloneWhenTheSinkHadSucceeded: a full disk, a read-only
// moment. The receiver is not called a second time for what it acknowledged.
func TestAdvance_IsTriedAgainAloneWhenTheSinkHadSucceeded(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	exec(t, pool, `CREATE SEQUENCE dispatch.refused`)
	full := sync.OnceFunc(func() {
		exec(t, pool, `
			CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				PERFORM nextval('dispatch.refused');
				RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100';
			END $$;
			CREATE TRIGGER refuse BEFORE UPDATE ON dispatch.cursor FOR EACH ROW
				WHEN (old.position < new.position) EXECUTE FUNCTION dispatch.refuse()`)
	})
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { full(); return nil }}
	start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "the advance is refused", func() bool {
		var refused bool
		err := pool.QueryRow(t.Context(), `SELECT is_called FROM dispatch.refused`).Scan(&refused)
		return err == nil && refused
	})
	exec(t, pool, `ALTER TABLE dispatch.cursor DISABLE TRIGGER refuse`)
	eventually(t, "the cursor passes both", func() bool { return row(t, pool).Sequence == 2 })
	require.Equal(t, []string{"1/1", "2/1"}, sink.attempts())
}

func TestAdvance_OfAnInTxProcessIsNeverMadeWithoutItsEffects(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	full := sync.OnceFunc(func() {
		exec(t, pool, `
			CREATE SEQUENCE dispatch.tries;
			CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF nextval('dispatch.tries') < 4 THEN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END IF;
				RETURN new;
			END $$;
			CREATE TRIGGER refuse BEFORE UPDATE ON dispatch.cursor FOR EACH ROW
				WHEN (old.position < new.position) EXECUTE FUNCTION dispatch.refuse()`)
	})
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { full(); return nil }}
	require.NoError(t, process(t, pool, processor.InTx(sink), nil).Drain(t.Context()))
	require.Equal(t, upTo(3), effects(t, pool))
	require.EqualValues(t, 3, row(t, pool).Sequence)
}

// TestLostLease_EndsTheSinkCallAndAnotherWorkerDelivers: the records behind stay
// in order, and only what was in flight comes twice.
func TestLostLease_EndsTheSinkCallAndAnotherWorkerDelivers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 4)
	called, release := make(chan struct{}), make(chan struct{})
	first := &receiver{answer: func(ctx context.Context, d processor.Delivery) error {
		if d.ID != "2" {
			return nil
		}
		close(called)
		defer func() { <-release }() // it must not be first at the lease again
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), cursor.ErrLeaseLost) {
			t.Errorf("the call ended with %v", context.Cause(ctx))
		}
		return ctx.Err()
	}}
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Timeout: time.Second})
	require.NoError(t, err)
	stop := start(t, process(t, pool, processor.Each(first), func(c *processor.Config) { c.Store = s }))
	<-called
	second := &receiver{}
	start(t, process(t, pool, processor.Each(second), nil))
	exec(t, pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND starts_with(application_name, $1)`, cursor.ApplicationLease)
	eventually(t, "the second worker delivers the rest", func() bool { return second.calls() == 3 })
	require.Equal(t, []string{"2/1", "3/1", "4/1"}, second.attempts())
	require.Greater(t, second.got[0].Epoch, first.got[1].Epoch)
	require.Equal(t, second.got[0].Sequence, first.got[1].Sequence)
	close(release)
	require.NoError(t, stop())
	require.Equal(t, []string{"1/1", "2/1"}, first.attempts())
}

func TestRun_SurvivesADatabaseThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := databaseOn(t, server.URL())
	insert(t, pool, 3)
	sink := &receiver{}
	stop := start(t, process(t, pool, processor.Each(sink), nil))
	eventually(t, "delivered", func() bool { return sink.calls() == 3 })
	for round := range 2 {
		require.NoError(t, server.StopImmediate(t.Context()))
		require.NoError(t, server.Restart(t.Context()))
		eventually(t, "insert again", func() bool {
			_, err := pool.Exec(t.Context(), `INSERT INTO dispatch.bookings (customer) VALUES ('x')`)
			return err == nil
		})
		eventually(t, "delivered again", func() bool { return sink.calls() == 4+round })
	}
	require.NoError(t, stop())
	for i, d := range sink.got {
		require.EqualValues(t, i+1, d.Sequence)
	}
}

func TestRun_BacksOffUntilTheDatabaseIsThere(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := databaseOn(t, server.URL())
	insert(t, pool, 2)
	require.NoError(t, server.StopFast(t.Context()))
	sink := &receiver{}
	stop := start(t, process(t, pool, processor.Each(sink), nil))
	require.NoError(t, server.Restart(t.Context()))
	eventually(t, "delivered", func() bool { return sink.calls() == 2 })
	require.NoError(t, stop())
}

func TestRun_ACursorThatIsDeletedUnderItIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	log := &logbook{}
	sink := &receiver{}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "delivered", func() bool { return row(t, pool).Sequence == 2 })
	exec(t, pool, `CREATE TABLE dispatch.kept AS TABLE dispatch.cursor; DELETE FROM dispatch.cursor`)
	insert(t, pool, 1)
	eventually(t, "it says so", func() bool { return log.has("its row was deleted while the process ran") })
	require.Equal(t, 2, sink.calls())

	exec(t, pool, `INSERT INTO dispatch.cursor TABLE dispatch.kept`)
	eventually(t, "it goes on where it was", func() bool { return sink.calls() == 3 })
	require.Equal(t, []string{"1/1", "2/1", "3/1"}, sink.attempts())

	exec(t, pool, `DELETE FROM dispatch.cursor`)
	anew := process(t, pool, processor.Each(sink), nil)
	require.ErrorIs(t, anew.Drain(t.Context()), cursor.ErrDeleted)
	anew = process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Start, c.Recreate = processor.End, true })
	require.NoError(t, anew.Drain(t.Context()))
	require.Equal(t, 3, sink.calls())
}

func TestRun_ASourceTableThatIsGoneIsNamedAndTakenUpWhenItIsBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	log := &logbook{}
	sink := &receiver{}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "delivered", func() bool { return sink.calls() == 1 })
	exec(t, pool, `ALTER TABLE dispatch.bookings RENAME TO away`)
	eventually(t, "it says so", func() bool { return log.has("table dispatch.bookings does not exist") })
	exec(t, pool, `ALTER TABLE dispatch.away RENAME TO bookings`)
	insert(t, pool, 1)
	eventually(t, "it goes on", func() bool { return sink.calls() == 2 })
	require.Equal(t, cursor.Running, row(t, pool).State)
}
