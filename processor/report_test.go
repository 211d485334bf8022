package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestConfig_LogsByDefault(t *testing.T) {
	t.Parallel()
	require.Same(t, slog.Default(), processor.Config{}.DefaultLogger())
}

func TestLog_NamesTakeOverStandingByCaughtUpAndRecovery(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	first, second := &logbook{}, &logbook{}
	release := make(chan struct{})
	slow := &receiver{answer: func(context.Context, processor.Delivery) error { <-release; return nil }}
	stop := start(t, process(t, pool, processor.Each(slow), func(c *processor.Config) { c.Logger = first.logger() }))
	eventually(t, "the first delivers", func() bool { return slow.calls() > 0 })
	sink := &receiver{}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = second.logger() }))
	eventually(t, "the second stands by", func() bool { return second.has("standing by: another worker delivers") })
	close(release)
	eventually(t, "the first has caught up", func() bool { return first.has("caught up") })
	require.NoError(t, stop())
	insert(t, pool, 1)
	eventually(t, "the second takes over", func() bool { return second.has("took over") && sink.calls() == 1 })

	exec(t, pool, "ALTER TABLE dispatch.bookings RENAME TO away")
	eventually(t, "it cannot work", func() bool { return second.has("cannot work") })
	exec(t, pool, "ALTER TABLE dispatch.away RENAME TO bookings")
	eventually(t, "it has recovered", func() bool { return second.has("recovered") })
}

// TestLog_NamesAStrangerThatHasTheRow: "another worker delivers" would be wrong.
func TestLog_NamesAStrangerThatHasTheRow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	log, sink := &logbook{}, &receiver{}
	stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "it waits for records", func() bool { return log.has("caught up") })
	tx := pgtest.Begin(t, pool, `SELECT FROM dispatch.cursor FOR UPDATE`)
	insert(t, pool, 1)
	eventually(t, "the log names the session", func() bool {
		return log.has(`level=WARN msg="nothing is delivered: the cursor's row is locked, and not by a worker"`) &&
			log.has(fmt.Sprintf("pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %d AND xact_start = ", tx.Conn().PgConn().PID()))
	})
	require.False(t, log.has("standing by"))
	require.NoError(t, tx.Rollback(t.Context()))
	eventually(t, "it goes on", func() bool { return sink.calls() == 1 && log.has("recovered") })
	require.NoError(t, stop())
}

// An error that comes each second is a line each minute, which says how often it came.
func TestLog_SamplesAnErrorThatGoesOnAndCountsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		r := processor.NewReporter(log.logger())
		for range 150 {
			r.Round(errors.New("no such table"))
			time.Sleep(time.Second)
		}
		require.Equal(t, 3, log.count("no such table"), "at once, after a minute, and after two")
		require.Equal(t, 2, log.count("repeated=60"))
		r.Round(errors.New("permission denied"))
		require.Equal(t, 1, log.count("permission denied"), "another error is news")
		r.Round(nil)
		require.Equal(t, 1, log.count(`msg=recovered after=2m30s`))
		r.Round(errors.New("permission denied"))
		require.Equal(t, 2, log.count("permission denied"), "it is news again")
	})
}

// The database's clock is set back by an hour during a back-off.
func TestRetry_AClockThatIsSetBackDoesNotMakeTheWaitLonger(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	sink := &receiver{answer: failing("1", 1, processor.RetryAfter(errRefused, 1500*time.Millisecond))}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { quick(c); c.Poll = 20 * time.Millisecond }))
	eventually(t, "the failure stands in the row", func() bool { return row(t, pool).Failure != nil })
	exec(t, pool, "UPDATE dispatch.cursor SET last_failed_at = last_failed_at + interval '1 hour', next_attempt_at = next_attempt_at + interval '1 hour'")
	eventually(t, "the next attempt comes", func() bool { return sink.calls() == 2 })
}

// A sink that computes for longer than the lease's time-out, without a statement: its
// connection cannot be asked for a sign of life meanwhile.
func TestInTx_ASinkMayWorkForLongerThanTheLeaseTimeoutWithoutSQL(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	sink := processor.TxSinkFunc(func(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
		if _, err := tx.Exec(ctx, `INSERT INTO dispatch.effect (id) VALUES ($1)`, d.ID); err != nil {
			return err
		}
		work := time.NewTimer(2 * time.Second)
		defer work.Stop()
		<-work.C
		return nil
	})
	p := process(t, pool, processor.InTx(sink), func(c *processor.Config) { c.Store = leaseOf(t, pool, time.Second); c.Retry.Attempts = 1 })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, p.Drain(ctx))
	require.NoError(t, ctx.Err())
	require.Equal(t, upTo(1), effects(t, pool))
}

func TestNew_RefusesAnInTxTimeoutThatTheLeaseCannotOutlast(t *testing.T) {
	t.Parallel()
	pool := database(t)
	config := processor.Config{Process: "sms", Store: store(t, pool), Source: source(t, pool), Dispatch: processor.InTx(&receiver{}), Timeout: 11 * time.Minute}
	_, err := processor.New(config)
	require.ErrorContains(t, err, "the timeout of an InTx sink must be at most 10m0s, got 11m0s")
	config.Dispatch = processor.Each(&receiver{})
	_, err = processor.New(config)
	require.NoError(t, err)
}

// A session that was ended is a line each; one that cannot be ended is a line each minute.
func TestLog_WarnsOfASessionThatNeverFinishesItsCommand(t *testing.T) {
	t.Parallel()
	var log logbook
	p := process(t, database(t), processor.Each(&receiver{}), func(c *processor.Config) { c.Logger = log.logger() })
	torn := &cursor.TornError{Holder: cursor.Locker{PID: 7, Transaction: "3/4", Application: cursor.ApplicationLease + "sms", Unfinished: 35 * time.Second}}
	for range 2 {
		processor.WarnOfTorn(p, fmt.Errorf("lock: %w", torn))
	}
	require.Equal(t, 2, log.count("level=WARN msg=\"ended a session that held the lease"))
	torn.Err = errors.New("permission denied")
	for range 2 {
		processor.WarnOfTorn(p, torn)
	}
	require.Equal(t, 1, log.count("end it with SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = 7 AND "))
}
