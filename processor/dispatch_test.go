package processor_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

var errRefused = errors.New("refused")

// delivered checks that records 1 to n were acknowledged in order.
func delivered(t testing.TB, ds []processor.Delivery, n int) {
	t.Helper()
	require.Len(t, ds, n)
	for i, d := range ds {
		require.Equal(t, strconv.Itoa(i+1), d.ID)
		require.EqualValues(t, i+1, d.Sequence)
		require.EqualValues(t, 1, d.Epoch)
		require.Equal(t, 1, d.Attempt)
	}
}

// advances counts the checkpoints that moved the cursor for good.
func advances(t testing.TB, pool *pgxpool.Pool) (count func() int) {
	t.Helper()
	exec(t, pool, `
		CREATE TABLE dispatch.advances ();
		CREATE FUNCTION dispatch.count() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO dispatch.advances DEFAULT VALUES; RETURN NULL; END $$;
		CREATE TRIGGER count AFTER UPDATE ON dispatch.cursor FOR EACH ROW
			WHEN (old.position < new.position) EXECUTE FUNCTION dispatch.count()`)
	return func() int { return pgtest.Value[int](t, pool, `SELECT count(*) FROM dispatch.advances`) }
}

func TestEach_DeliversEveryRecordInOrderOnceAndAdvancesEveryCheckpoint(t *testing.T) {
	t.Parallel()
	for checkpoint, want := range map[int]int{1: 250, 40: 3 + 3 + 2, 100: 3} { // batches of 100, 100 and 50
		t.Run(strconv.Itoa(checkpoint), func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			count := advances(t, pool)
			insert(t, pool, 250)
			sink := &receiver{}
			p := process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Batch, c.Checkpoint = 100, checkpoint })
			require.NoError(t, p.Drain(t.Context()))
			delivered(t, sink.got, 250)
			require.Equal(t, want, count())
			require.EqualValues(t, 250, row(t, pool).Sequence)
			require.Equal(t, sink.got[249].Position, row(t, pool).Position)
		})
	}
}

func TestBatch_AdvancesBehindEachAcknowledgedPrefix(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 10)
	var calls [][]string
	p := process(t, pool, processor.Batch(processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
		var call []string
		for _, d := range ds {
			call = append(call, d.ID+"/"+strconv.Itoa(d.Attempt))
		}
		calls = append(calls, call)
		if len(calls) == 1 {
			return 4, errRefused // 1 to 4 are acknowledged, 5 is not
		}
		return len(ds), nil
	})), func(c *processor.Config) { c.Batch = 6; quick(c) })
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, [][]string{
		{"1/1", "2/1", "3/1", "4/1", "5/1", "6/1"},
		{"5/2", "6/1"},
		{"7/1", "8/1", "9/1", "10/1"},
	}, calls)
	require.EqualValues(t, 10, row(t, pool).Sequence)
}

// The record is not one that failed: it has its first attempt, and no event.
func TestBatch_ACallWithoutTimeForTheRestIsNoFailure(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 5)
	var calls [][]string
	var classes []cursor.Class
	p := process(t, pool, processor.Batch(processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
		var call []string
		for _, d := range ds {
			call = append(call, d.ID+"/"+strconv.Itoa(d.Attempt))
		}
		calls = append(calls, call)
		if len(ds) > 2 {
			return 2, outcome.NoTime(errRefused)
		}
		return len(ds), nil
	})), func(c *processor.Config) {
		quick(c)
		c.Observe = func(e processor.Event) {
			if e.Kind == processor.EventAttempt {
				classes = append(classes, e.Class)
			}
		}
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, [][]string{{"1/1", "2/1", "3/1", "4/1", "5/1"}, {"3/1", "4/1", "5/1"}, {"5/1"}}, calls)
	require.Equal(t, []cursor.Class{"", "", ""}, classes)
	require.EqualValues(t, 5, row(t, pool).Sequence)
}

func TestBatch_HoldsASinkToItsContract(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	p := process(t, pool, processor.Batch(processor.BatchSinkFunc(func(context.Context, []processor.Delivery) (int, error) {
		return 3, nil
	})), nil)
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.ErrorContains(t, halt, "acknowledged 3 of 2 records")
	require.Zero(t, row(t, pool).Sequence)
}

// effects are the ids that the TxSink wrote, in order.
func effects(t testing.TB, pool *pgxpool.Pool) (ids []int) {
	t.Helper()
	return pgtest.Value[[]int](t, pool, `SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM dispatch.effect`)
}

func upTo(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i + 1
	}
	return ids
}

func TestInTx_EffectsAndCursorMoveTogether(t *testing.T) {
	t.Parallel()
	pool := database(t)
	count := advances(t, pool)
	insert(t, pool, 25)
	p := process(t, pool, processor.InTx(&receiver{}), func(c *processor.Config) { c.Checkpoint = 10 })
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, upTo(25), effects(t, pool))
	require.Equal(t, 3, count())
}

func TestInTx_CommitsWhatStandsBeforeTheFailingRecordAndNothingOfIt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 25)
	sink := &receiver{answer: failing("14", 1000, processor.Permanent(errRefused))}
	p := process(t, pool, processor.InTx(sink), func(c *processor.Config) { c.Checkpoint = 10 })
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.Equal(t, "14", halt.Failure.RecordID)
	require.Equal(t, upTo(13), effects(t, pool))
	require.EqualValues(t, 13, row(t, pool).Sequence)
}

func TestInTx_AFailedStatementIsUndoneAndTriedAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 12)
	exec(t, pool, `ALTER TABLE dispatch.effect ADD CONSTRAINT poison CHECK (id <> 7)`)
	p := process(t, pool, processor.InTx(&receiver{}), func(c *processor.Config) {
		c.Checkpoint = 10
		quick(c)
		c.Retry.Attempts = 3
	})
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.Equal(t, "7", halt.Failure.RecordID)
	require.Equal(t, 3, halt.Failure.Attempts)
	require.Equal(t, upTo(6), effects(t, pool))

	exec(t, pool, `ALTER TABLE dispatch.effect DROP CONSTRAINT poison`)
	exec(t, pool, `UPDATE dispatch.cursor SET state = 'running'`)
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, upTo(12), effects(t, pool))
}

// TestInTx_FindsTheRecordThatBreaksADeferredConstraint: at COMMIT it would be
// nobody's, and the process would go round for ever.
func TestInTx_FindsTheRecordThatBreaksADeferredConstraint(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 12)
	exec(t, pool, `CREATE TABLE dispatch.known (id bigint PRIMARY KEY);
		INSERT INTO dispatch.known SELECT i FROM generate_series(1, 12) i WHERE i <> 7;
		ALTER TABLE dispatch.effect ADD FOREIGN KEY (id) REFERENCES dispatch.known DEFERRABLE INITIALLY DEFERRED`)
	p := process(t, pool, processor.InTx(&receiver{}), func(c *processor.Config) {
		c.Checkpoint = 10
		quick(c)
		c.Retry.Attempts = 2
	})
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.Equal(t, "7", halt.Failure.RecordID)
	require.Equal(t, upTo(6), effects(t, pool))
}

func TestDispatch_APanicIsAFailureOfItsRecordNotOfTheProgram(t *testing.T) {
	t.Parallel()
	panics := func(_ context.Context, d processor.Delivery) error {
		if d.ID == "2" && d.Attempt < 3 {
			panic("nil map")
		}
		return nil
	}
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"each":  func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"in tx": func(r *receiver) processor.Dispatch { return processor.InTx(r) },
		"batch": func(r *receiver) processor.Dispatch {
			return processor.Batch(processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
				for i, d := range ds {
					if err := r.Deliver(ctx, d); err != nil {
						return i, err
					}
				}
				return len(ds), nil
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 3)
			sink := &receiver{answer: panics}
			p := process(t, pool, dispatch(sink), func(c *processor.Config) { c.Batch = 1; quick(c) })
			require.NoError(t, p.Drain(t.Context()))
			require.Equal(t, []string{"1/1", "2/1", "2/2", "2/3", "3/1"}, sink.attempts())
			require.Nil(t, row(t, pool).Failure)
		})
	}
}

func TestJSON_DecodesForTheHandlerAndHaltsOnWhatIsNoT(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	type booking struct {
		ID       int64  `json:"id"`
		Customer string `json:"customer"`
	}
	var got []booking
	p := process(t, pool, processor.Each(processor.JSON(func(_ context.Context, b booking, _ processor.Delivery) error {
		got = append(got, b)
		return nil
	})), nil)
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, []booking{{1, "c1"}, {2, "c2"}}, got)

	insert(t, pool, 1)
	p = process(t, pool, processor.Each(processor.JSON(func(context.Context, []int, processor.Delivery) error { return nil })), nil)
	var halt *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halt)
	require.Equal(t, cursor.ClassPermanent, halt.Failure.Class)
	require.Equal(t, cursor.Halted, row(t, pool).State)
}
