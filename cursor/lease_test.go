package cursor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestAcquire_TellsATypoFromALeaseThatIsHeld(t *testing.T) {
	t.Parallel()
	pool := database(t)
	a := created(t, pool, "a")
	acquire(t, a)
	_, err := store(t, pool, "b").Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHeld)
	_, err = a.Acquire(t.Context(), "smss")
	require.ErrorIs(t, err, cursor.ErrUnknown)
}

func TestAcquire_RefusesWhatAnOperatorStopped(t *testing.T) {
	t.Parallel()
	for state, want := range map[cursor.State]error{cursor.Paused: cursor.ErrPaused, cursor.Halted: cursor.ErrHalted} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			exec(t, pool, `UPDATE dispatch.cursor SET state = $1`, state)
			_, err := s.Acquire(t.Context(), "sms")
			require.ErrorIs(t, err, want)
		})
	}
}

func TestAcquire_CommitsTheEpochBeforeTheFirstDelivery(t *testing.T) {
	t.Parallel()
	pool := database(t)
	lease := acquire(t, created(t, pool, "a"))
	require.EqualValues(t, 1, lease.Epoch())
	var epoch cursor.Epoch
	var holder string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT epoch, holder FROM dispatch.cursor`).Scan(&epoch, &holder))
	require.Equal(t, lease.Epoch(), epoch, "another session sees it")
	require.Equal(t, "a", holder)
}

func TestAcquire_EpochGrowsAtEveryChangeOfWorkerAndOnlyThen(t *testing.T) {
	t.Parallel()
	pool := database(t)
	a, b := created(t, pool, "a"), store(t, pool, "b")
	var epochs []cursor.Epoch
	for _, s := range []*cursor.Store{a, a, b, a, a} {
		lease := acquire(t, s)
		epochs = append(epochs, lease.Epoch())
		lease.Release()
	}
	require.Equal(t, []cursor.Epoch{1, 1, 2, 3, 3}, epochs)
}

func TestAdvance_IsDurableAndKeepsTheLease(t *testing.T) {
	t.Parallel()
	pool := database(t)
	a, b := created(t, pool, "a"), store(t, pool, "b")
	lease := acquire(t, a)
	for _, to := range []cursor.Position{"p1", "p2", "p3"} {
		require.NoError(t, lease.Advance(t.Context(), to, 2))
		row, err := b.Look(t.Context(), "sms")
		require.NoError(t, err)
		require.Equal(t, to, row.Position)
		_, err = b.Acquire(t.Context(), "sms")
		require.ErrorIs(t, err, cursor.ErrHeld)
	}
	require.NoError(t, cause(lease))
	require.EqualValues(t, 6, lease.Sequence())
	require.Equal(t, cursor.Position("p3"), lease.Position())
}

func TestAdvance_RefusesToGoBackOrNowhere(t *testing.T) {
	t.Parallel()
	for _, to := range []cursor.Position{"p4", "p5", ""} {
		t.Run("to "+string(to), func(t *testing.T) {
			t.Parallel()
			s := created(t, database(t), "a")
			lease := acquire(t, s)
			require.NoError(t, lease.Advance(t.Context(), "p5", 1))
			require.ErrorIs(t, lease.Advance(t.Context(), to, 1), cursor.ErrLeaseLost)
			require.ErrorIs(t, cause(lease), cursor.ErrLeaseLost)
			row, err := s.Look(t.Context(), "sms")
			require.NoError(t, err)
			require.Equal(t, cursor.Position("p5"), row.Position)
			require.EqualValues(t, 1, row.Sequence)
		})
	}
}

// TestAdvance_RefusesSupersededEpoch: the epoch is the last guard, should a
// worker have lost the lock and not know it. Here its transaction is ended behind
// its back, and another worker comes between.
func TestAdvance_RefusesSupersededEpoch(t *testing.T) {
	t.Parallel()
	for name, acquired := range map[string]func(*cursor.Store) (*cursor.Lease, error){
		"nothing beside it": func(s *cursor.Store) (*cursor.Lease, error) { return s.Acquire(t.Context(), "sms") },
		"a look for waiters": func(s *cursor.Store) (*cursor.Lease, error) {
			lease, err := s.Acquire(t.Context(), "sms")
			cursor.Unyielded(lease)
			return lease, err
		},
		"effects": func(s *cursor.Store) (*cursor.Lease, error) { return s.AcquireTx(t.Context(), "sms", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			b := store(t, pool, "b")
			zombie, err := acquired(created(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1}), "a"))
			require.NoError(t, err)
			t.Cleanup(zombie.Release)
			require.NoError(t, cursor.Exec(t.Context(), zombie, "COMMIT; BEGIN")) // lets go of the lock
			lease := acquire(t, b)
			require.Greater(t, lease.Epoch(), zombie.Epoch())
			lease.Release()
			cursor.StandAt(zombie, rowAt(t, pool)) // as after VACUUM FULL: its row stood there before
			require.ErrorIs(t, zombie.Advance(t.Context(), "p9", 1), cursor.ErrLeaseLost)
			row, err := b.Look(t.Context(), "sms")
			require.NoError(t, err)
			require.Equal(t, cursor.Position(""), row.Position)
		})
	}
}

func rowAt(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return pgtest.Value[string](t, pool, `SELECT ctid::text FROM dispatch.cursor WHERE process_name = 'sms'`)
}

func TestAdvance_NoticesWhatAnOperatorDidBetweenTwoTransactions(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"pause": `UPDATE dispatch.cursor SET state = 'paused'`,
		"seek":  `UPDATE dispatch.cursor SET position = 'p7'`,
		"steal": `UPDATE dispatch.cursor SET epoch = epoch + 1, holder = 'thief'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			lease := acquire(t, created(t, pool, "a"))

			// The operator waits for the lock, and is not starved by a worker that
			// makes one checkpoint after another.
			done := make(chan error, 1)
			go func() {
				_, err := pool.Exec(t.Context(), sql)
				done <- err
			}()
			waitForLock(t, pool)
			for n := 0; cause(lease) == nil; n++ {
				require.Less(t, n, 1_000_000)
				if err := lease.Advance(t.Context(), cursor.Position(fmt.Sprintf("p1%06d", n)), 1); err != nil {
					break
				}
			}
			require.NoError(t, <-done)
			require.ErrorIs(t, over(t, lease), cursor.ErrLeaseLost)
		})
	}
}

// Whoever waits for the row gets it at the next look, in a tenth of a second,
// however busy the worker is.
func TestAdvance_StandsAsideForASessionThatWaits(t *testing.T) {
	t.Parallel()
	pool := database(t)
	lease := acquire(t, created(t, pool, "a"))
	done := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), `UPDATE dispatch.cursor SET state = 'paused'`)
		done <- err
	}()
	waitForLock(t, pool)
	cursor.Unyielded(lease)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	// Nothing behind it: it was seen to wait, and did not slip in between two transactions by luck.
	require.Regexp(t, "yielded to a session that waits for the row$", cause(lease).Error())
	lease.Release()
	require.NoError(t, <-done)
}

// What happens to the row between two transactions of the lease happens here at
// the end of the first one.
func TestAdvance_GoesOnWithNothingButTheRowItLeft(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"pause":    `state = 'paused'`,
		"halt":     `state = 'halted'`,
		"seek":     `position = position || '9'`,
		"epoch":    `epoch = epoch + 1`,
		"sequence": `sequence = sequence + 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			lease := acquire(t, created(t, pool, "a"))
			exec(t, pool, `
				CREATE FUNCTION dispatch.meddle() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN UPDATE dispatch.cursor SET `+change+`; RETURN NULL; END $$;
				CREATE TRIGGER meddle AFTER UPDATE ON dispatch.cursor FOR EACH ROW
					WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION dispatch.meddle()`)
			require.NoError(t, lease.Advance(t.Context(), "p1", 1), "what was delivered is durable")
			require.ErrorIs(t, cause(lease), cursor.ErrLeaseLost)
			require.ErrorIs(t, lease.Advance(t.Context(), "p2", 1), cursor.ErrLeaseLost)
		})
	}
}

func TestRelease_LeavesNothingBehindAndMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	one := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1})
	s := created(t, one, "a")
	for range 3 {
		lease := acquire(t, s)
		lease.Release()
		lease.Release()
		require.Error(t, cause(lease))
		require.NotErrorIs(t, cause(lease), cursor.ErrLeaseLost)
		require.Error(t, lease.Advance(t.Context(), "p1", 1))
	}
	acquire(t, store(t, pool, "b"))
}

func TestAcquire_OutlivesTheContextItWasCalledWith(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	ctx, cancel := context.WithCancel(t.Context())
	lease, err := s.Acquire(ctx, "sms")
	require.NoError(t, err)
	defer lease.Release()
	cancel()
	require.NoError(t, lease.Held())
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}

func TestAcquire_MakesCommitsDurableWhereTheRoleDoesNot(t *testing.T) {
	t.Parallel()
	database(t)
	pool := pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "synchronous_commit", "off"), pgtest.PoolConfig{})
	s := created(t, pool, "a")
	lease, err := s.AcquireTx(t.Context(), "sms", 0)
	require.NoError(t, err)
	defer lease.Release()
	require.NoError(t, lease.WithTx(t.Context(), func(tx pgx.Tx) error {
		var mode string
		err := tx.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&mode)
		require.Equal(t, "on", mode)
		return err
	}))
}

func TestWithTx_CommitsTheEffectsWithTheAdvanceOrNotAtAll(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `CREATE TABLE dispatch.effect (n int)`)
	lease, err := created(t, pool, "a").AcquireTx(t.Context(), "sms", 0)
	require.NoError(t, err)
	defer lease.Release()
	effect := func(n int) {
		require.NoError(t, lease.WithTx(t.Context(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO dispatch.effect VALUES ($1)`, n)
			return err
		}))
	}
	effect(1)
	effect(2)
	require.NoError(t, lease.Advance(t.Context(), "p2", 2))
	effect(3)
	require.NoError(t, lease.Rollback(t.Context()))
	effect(4)
	require.NoError(t, lease.Advance(t.Context(), "p4", 1))
	effect(5)
	lease.Release()

	require.Equal(t, []int{1, 2, 4}, pgtest.Value[[]int](t, pool, `SELECT array_agg(n ORDER BY n) FROM dispatch.effect`))
}

func TestWithTx_RefusesToCommitAndToRollBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease, err := s.AcquireTx(t.Context(), "sms", 0)
	require.NoError(t, err)
	defer lease.Release()
	require.NoError(t, lease.WithTx(t.Context(), func(tx pgx.Tx) error {
		require.ErrorIs(t, tx.Commit(t.Context()), cursor.ErrTx)
		require.ErrorIs(t, tx.Rollback(t.Context()), cursor.ErrTx)
		savepoint, err := tx.Begin(t.Context())
		require.NoError(t, err)
		_, err = savepoint.Exec(t.Context(), `SELECT 1/0`)
		require.Error(t, err)
		require.NoError(t, savepoint.Rollback(t.Context()))
		_, err = tx.Exec(t.Context(), `SELECT 1`)
		return err
	}))
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	lease.Release()

	plain := acquire(t, s)
	require.ErrorContains(t, plain.WithTx(t.Context(), func(pgx.Tx) error { return nil }), "AcquireTx")
}

func TestWithTx_EndsAStatementAfterItsTimeoutAndKeepsTheLease(t *testing.T) {
	t.Parallel()
	lease, err := created(t, database(t), "a").AcquireTx(t.Context(), "sms", time.Second)
	require.NoError(t, err)
	defer lease.Release()
	err = lease.WithTx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT pg_sleep(60)`)
		return err
	})
	require.ErrorContains(t, err, "57014")
	require.NoError(t, lease.Rollback(t.Context()))
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}

func TestFail_WritesDownTheRecordForWhicheverWorkerComesNext(t *testing.T) {
	t.Parallel()
	pool := database(t)
	a, b := created(t, pool, "a"), store(t, pool, "b")
	lease := acquire(t, a)
	now := time.Now()
	require.NoError(t, lease.Fail(t.Context(), cursor.Failure{
		Position: "p1", RecordID: "1", Attempts: 3, First: now.Add(-time.Minute), Last: now, Wait: time.Hour, Error: "no\x00pe \xff"}))
	require.Error(t, cause(lease), "the lease is given back")

	lease = acquire(t, b)
	first := *lease.Failure()
	require.Equal(t, 3, first.Attempts)
	require.Equal(t, "1", first.RecordID)
	require.Equal(t, "nope \uFFFD", first.Error)
	require.InDelta(t, time.Hour, first.Wait, float64(time.Minute))
	require.InDelta(t, time.Minute, first.Last.Sub(first.First), float64(time.Second))

	require.NoError(t, lease.Fail(t.Context(), cursor.Failure{Position: "p1", RecordID: "1", Attempts: 4, Error: "again"}))
	row, err := a.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, 4, row.Failure.Attempts)
	require.Equal(t, first.First, row.Failure.First, "the first failure stands")
	require.Zero(t, row.Failure.Wait)

	lease = acquire(t, a)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.Nil(t, lease.Failure(), "an advance forgets the failure")
}

// A source of a program with the library may hand on any bytes.
func TestHalt_StoresWhatIsNoText(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "w")
	for _, text := range []string{"a\x00b", "a\xffb", strings.Repeat("é", 5000)[1:]} {
		f := cursor.Failure{Position: "x", RecordID: text, Attempts: 1, Error: text, Class: cursor.ClassPermanent}
		lease := acquire(t, s)
		require.NoError(t, lease.Note(t.Context(), f))
		require.NoError(t, lease.Halt(t.Context(), f))
		row, err := s.Look(t.Context(), "sms")
		require.NoError(t, err)
		require.Equal(t, cursor.Halted, row.State)
		_, err = operator.New(s).Retry(t.Context(), "sms", cursor.Decision{Actor: text})
		require.NoError(t, err)
	}
}

func TestHalt_StopsTheProcessAndLeavesAnAuditRow(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.NoError(t, lease.Halt(t.Context(), cursor.Failure{Position: "p2", RecordID: "2", Attempts: 1, Error: "422", Class: cursor.ClassPermanent}))
	_, err := s.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHalted)
	row, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, cursor.Halted, row.State)
	require.Equal(t, cursor.ClassPermanent, row.Failure.Class)
	require.Equal(t, cursor.Position("p1"), row.Position)
	var actor, reason, from, to string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT actor, reason, from_position, to_position
		FROM dispatch.cursor_event WHERE action = 'halt'`).Scan(&actor, &reason, &from, &to))
	require.Equal(t, []string{"a", "422", "p1", "p2"}, []string{actor, reason, from, to})
}

func TestAcquire_SaysWhenThePoolIsExhausted(t *testing.T) {
	t.Parallel()
	database(t)
	one := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1})
	s := created(t, one, "a")
	acquire(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, "sms")
	require.True(t, errors.Is(err, context.DeadlineExceeded))
	require.ErrorContains(t, err, "acquire a connection")
}
