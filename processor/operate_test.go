package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// busy keeps a producer going until the test stops it, some records ahead of the
// process, and reports how many it made.
func busy(t testing.TB, pool *pgxpool.Pool) (stop func() int) {
	t.Helper()
	const ahead, step = 100, 20
	ctx, cancel := context.WithCancel(t.Context())
	made := make(chan int, 1)
	s, src := store(t, pool), source(t, pool)
	go func() {
		n := 0
		for ctx.Err() == nil {
			row, _ := s.Look(ctx, "sms")
			if lag, err := src.Lag(ctx, row.Position); err == nil && lag.Records < ahead {
				if _, err := pool.Exec(context.WithoutCancel(ctx), `INSERT INTO dispatch.bookings (customer) SELECT 'c' FROM generate_series(1, $1::int)`, step); err == nil {
					n += step
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond):
			}
		}
		made <- n
	}()
	stop = sync.OnceValue(func() int { cancel(); return <-made })
	t.Cleanup(func() { stop() })
	return stop
}

// workers are the ways of delivering, each with a read-ahead behind it.
var workers = map[string]func(*receiver) (processor.Dispatch, func(*processor.Config)){
	"each": func(r *receiver) (processor.Dispatch, func(*processor.Config)) {
		return processor.Each(r), quick
	},
	"each, checkpoint 20": func(r *receiver) (processor.Dispatch, func(*processor.Config)) {
		return processor.Each(r), func(c *processor.Config) { quick(c); c.Checkpoint = 20 }
	},
	"batch": func(r *receiver) (processor.Dispatch, func(*processor.Config)) {
		return processor.Batch(processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
			for i, d := range ds {
				if err := r.Deliver(ctx, d); err != nil {
					return i, err
				}
			}
			return len(ds), nil
		})), func(c *processor.Config) { quick(c); c.Batch = 50 }
	},
	"in tx": func(r *receiver) (processor.Dispatch, func(*processor.Config)) {
		return processor.InTx(r), func(c *processor.Config) { quick(c); c.Checkpoint = 5 }
	},
}

// deliveries are those so far.
func (r *receiver) deliveries() []processor.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// caughtUp waits until nothing committed is left.
func caughtUp(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	s := source(t, pool)
	eventually(t, "all is delivered", func() bool {
		lag, err := s.Lag(t.Context(), row(t, pool).Position)
		return err == nil && lag.Records == 0
	})
}

// numbers holds deliveries against what every receiver relies on: epochs never go
// back, and a number stands for one record.
func numbers(t testing.TB, got []processor.Delivery) {
	t.Helper()
	byNumber := map[int64]string{}
	var epoch cursor.Epoch
	for _, d := range got {
		require.GreaterOrEqual(t, d.Epoch, epoch, "epochs never go back")
		epoch = d.Epoch
		if id, ok := byNumber[d.Sequence]; ok {
			require.Equal(t, id, d.ID, "number %d stands for one record", d.Sequence)
		}
		byNumber[d.Sequence] = d.ID
	}
}

func TestPause_OfABusyWorkerHoldsWhenItReturns(t *testing.T) {
	t.Parallel()
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			stop := busy(t, pool)
			sink := &receiver{}
			dispatch, config := worker(sink)
			log := &logbook{}
			start(t, process(t, pool, dispatch, func(c *processor.Config) { config(c); c.Logger = log.logger() }))
			for round := range 3 {
				calls := sink.calls()
				eventually(t, "it is busy", func() bool { return sink.calls() > calls+30 })
				decide(t, pool, (*operator.Operator).Pause)
				paused := sink.calls()
				require.EqualValues(t, paused, row(t, pool).Sequence, "nothing is in flight")
				eventually(t, "the worker has seen it", func() bool { return log.count("paused by an operator") > round })
				require.Equal(t, paused, sink.calls())
				decide(t, pool, (*operator.Operator).Resume)
			}
			made := stop()
			caughtUp(t, pool)
			require.False(t, log.has("lost the lease"), "it gave way, and lost nothing")
			require.Len(t, sink.deliveries(), made)
			for i, d := range sink.deliveries() {
				require.Equal(t, strconv.Itoa(i+1), d.ID)
				require.EqualValues(t, i+1, d.Sequence)
			}
			numbers(t, sink.deliveries())
		})
	}
}

// TestSeek_OfABusyWorkerDropsWhatItReadAhead: behind a seek comes what stands
// behind its target, and nothing that was read before.
func TestSeek_OfABusyWorkerDropsWhatItReadAhead(t *testing.T) {
	t.Parallel()
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			stop := busy(t, pool)
			sink := &receiver{}
			dispatch, config := worker(sink)
			start(t, process(t, pool, dispatch, config))
			src := source(t, pool)
			for round := range 2 {
				calls := sink.calls()
				eventually(t, "it is busy", func() bool { return sink.calls() > calls+30 })
				before := sink.calls()

				to, err := src.Before(t.Context(), strconv.Itoa(10*(round+1)))
				require.NoError(t, err)
				change := seek(t, pool, to)
				first := behind(t, sink, change.After.Epoch)
				require.Equal(t, strconv.Itoa(10*(round+1)), first.ID)
				require.Equal(t, change.After.Sequence+1, first.Sequence)
				require.Greater(t, sink.calls(), before)

				passed := count(t, pool)
				end, err := src.End(t.Context())
				require.NoError(t, err)
				change = seek(t, pool, end)
				first = behind(t, sink, change.After.Epoch)
				id, err := strconv.Atoi(first.ID)
				require.NoError(t, err)
				require.Greater(t, id, passed, "what was there is passed over")
			}
			stop()
			caughtUp(t, pool)
			numbers(t, sink.deliveries())
			inOrder(t, sink.deliveries())
		})
	}
}

// behind is the first delivery of an epoch.
func behind(t testing.TB, sink *receiver, epoch cursor.Epoch) (first processor.Delivery) {
	t.Helper()
	eventually(t, "a delivery of the new epoch", func() bool {
		got := sink.deliveries()
		at := slices.IndexFunc(got, func(d processor.Delivery) bool { return d.Epoch >= epoch })
		if at >= 0 {
			first = got[at]
		}
		return at >= 0
	})
	return first
}

// inOrder holds that within an epoch each record follows the one before it.
func inOrder(t testing.TB, got []processor.Delivery) {
	t.Helper()
	for i := 1; i < len(got); i++ {
		if got[i].Epoch == got[i-1].Epoch {
			require.Less(t, got[i-1].Position, got[i].Position)
			require.Equal(t, got[i-1].Sequence+1, got[i].Sequence)
		}
	}
}

func count(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return pgtest.Value[int](t, pool, `SELECT count(*) FROM dispatch.bookings`)
}

// TestRetryAndSkip_AgainstAWorkerThatTriesAgainAndAgain: its delays are short, so
// that it keeps the lease; an operator gets in between two attempts.
func TestRetryAndSkip_AgainstAWorkerThatTriesAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 30)
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				if d.ID == "7" || d.ID == "8" {
					return errRefused
				}
				return nil
			}}
			dispatch, config := worker(sink)
			start(t, process(t, pool, dispatch, config))
			eventually(t, "record 7 fails", func() bool { f := row(t, pool).Failure; return f != nil && f.RecordID == "7" && f.Attempts > 3 })
			decide(t, pool, (*operator.Operator).Retry)
			eventually(t, "its attempts start again", func() bool {
				got := sink.deliveries()
				last := slices.IndexFunc(got, func(d processor.Delivery) bool { return d.ID == "7" && d.Attempt > 3 })
				return last >= 0 && slices.ContainsFunc(got[last:], func(d processor.Delivery) bool { return d.ID == "7" && d.Attempt == 1 })
			})
			for _, id := range []string{"7", "8"} {
				eventually(t, "the record fails", func() bool { f := row(t, pool).Failure; return f != nil && f.RecordID == id })
				change := decide(t, pool, (*operator.Operator).Skip)
				require.Equal(t, id, change.Before.Failure.RecordID)
			}
			caughtUp(t, pool)
			require.EqualValues(t, 30, row(t, pool).Sequence, "those passed over keep their numbers")
			numbers(t, sink.deliveries())
			last := sink.deliveries()[len(sink.deliveries())-1]
			require.Equal(t, []any{"30", int64(30)}, []any{last.ID, last.Sequence})
		})
	}
}

// TestSkip_OfAHaltedProcessLetsTheRunningWorkerGoOn: and the record is never sent
// again.
func TestSkip_OfAHaltedProcessLetsTheRunningWorkerGoOn(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 5)
	sink, log := &receiver{answer: failing("3", 1000, processor.Permanent(errRefused))}, &logbook{}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Poll, c.Logger = 20*time.Millisecond, log.logger() }))
	eventually(t, "halted", func() bool { return row(t, pool).State == cursor.Halted })
	decide(t, pool, (*operator.Operator).Skip)
	eventually(t, "all delivered", func() bool { return row(t, pool).Sequence == 5 })
	require.Equal(t, []string{"1/1", "2/1", "3/1", "4/1", "5/1"}, sink.attempts())
	require.Equal(t, 1, log.count("an operator decided"), "the worker's log says so too")
	numbers(t, sink.deliveries())
}

// TestRetry_DoesNotWaitForALongBackOff: the row has it, and no worker the lease.
func TestRetry_DoesNotWaitForALongBackOff(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	sink := &receiver{answer: func() func(context.Context, processor.Delivery) error {
		failed := false
		return func(context.Context, processor.Delivery) error {
			if failed {
				return nil
			}
			failed = true
			return processor.RetryAfter(errRefused, time.Hour)
		}
	}()}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Poll = 20 * time.Millisecond }))
	eventually(t, "it waits", func() bool { f := row(t, pool).Failure; return f != nil && f.Wait > time.Minute })
	decide(t, pool, (*operator.Operator).Retry)
	eventually(t, "all delivered", func() bool { return row(t, pool).Sequence == 2 })
	require.Equal(t, []string{"1/1", "1/1", "2/1"}, sink.attempts())
}

// TestSeek_IsNotUndoneByAnAdvanceThatIsOwed: a worker that could not write down
// what the sink acknowledged makes up for it, unless an operator came between.
func TestSeek_IsNotUndoneByAnAdvanceThatIsOwed(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]int{"back": 2, "to where it stands": 4, "on": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 8)
			exec(t, pool, `
				CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
				CREATE TRIGGER refuse BEFORE UPDATE ON dispatch.cursor FOR EACH ROW
					WHEN (old.sequence = 3 AND new.sequence = 4) EXECUTE FUNCTION dispatch.refuse()`)
			sink := &receiver{}
			start(t, process(t, pool, processor.Each(sink), quick))
			eventually(t, "record 4 is acknowledged and not written down", func() bool { return sink.calls() == 4 })
			position, err := source(t, pool).Before(t.Context(), strconv.Itoa(to))
			require.NoError(t, err)
			seek(t, pool, position)
			caughtUp(t, pool)
			want := append(upTo(4), upTo(8)[to-1:]...)
			var got []int
			for _, d := range sink.deliveries() {
				id, err := strconv.Atoi(d.ID)
				require.NoError(t, err)
				got = append(got, id)
			}
			require.Equal(t, want, got)
			numbers(t, sink.deliveries())
		})
	}
}

// TestResume_SendsAgainWhatWasOwed: the advance failed, which is a fault, and what a worker knows ends with the epoch.
func TestResume_SendsAgainWhatWasOwed(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	full := sync.OnceFunc(func() {
		exec(t, pool, `
			CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
			CREATE TRIGGER refuse BEFORE UPDATE ON dispatch.cursor FOR EACH ROW
				WHEN (old.position < new.position) EXECUTE FUNCTION dispatch.refuse()`)
	})
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { full(); return nil }}
	start(t, process(t, pool, processor.Each(sink), quick))
	eventually(t, "the first record is acknowledged", func() bool { return sink.calls() == 1 })
	decide(t, pool, (*operator.Operator).Pause)
	exec(t, pool, `ALTER TABLE dispatch.cursor DISABLE TRIGGER refuse`)
	decide(t, pool, (*operator.Operator).Resume)
	eventually(t, "the cursor passes all", func() bool { return row(t, pool).Sequence == 3 })
	require.Equal(t, []string{"1/1", "1/1", "2/1", "3/1"}, sink.attempts())
	numbers(t, sink.deliveries())
}

// TestDecisions_ByTwoWorkersAndAnOperatorAtOnce: whatever the order of things, no
// number stands for two records and no epoch goes back.
func TestDecisions_ByTwoWorkersAndAnOperatorAtOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	stop := busy(t, pool)
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if id, _ := strconv.Atoi(d.ID); id%97 == 0 && d.Attempt < 3 {
			return errRefused
		}
		return nil
	}}
	for range 2 {
		start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { quick(c); c.Poll = 10 * time.Millisecond }))
	}
	s, src := store(t, pool), source(t, pool)
	eventually(t, "it is busy", func() bool { return sink.calls() > 50 })
	for round := range 10 {
		target, err := src.Before(t.Context(), strconv.Itoa(round*5+1))
		require.NoError(t, err)
		for _, act := range []func() (operator.Change, error){
			func() (operator.Change, error) { return operator.New(s).Pause(t.Context(), "sms", alice) },
			func() (operator.Change, error) { return operator.New(s).Retry(t.Context(), "sms", alice) },
			func() (operator.Change, error) { return operator.New(s).Resume(t.Context(), "sms", alice) },
			func() (operator.Change, error) { return operator.New(s).Skip(t.Context(), "sms", alice) },
			func() (operator.Change, error) { return operator.New(s).Seek(t.Context(), "sms", target, alice) },
		} {
			if _, err := act(); !errors.Is(err, operator.ErrNotFailing) {
				require.NoError(t, err, fmt.Sprint("round ", round))
			}
		}
	}
	stop()
	caughtUp(t, pool)
	numbers(t, sink.deliveries())
	inOrderBut(t, sink.deliveries())
}

// inOrderBut is inOrder where a record may be sent again after a failure.
func inOrderBut(t testing.TB, got []processor.Delivery) {
	t.Helper()
	for i := 1; i < len(got); i++ {
		if got[i].Epoch == got[i-1].Epoch && got[i].ID != got[i-1].ID {
			require.Equal(t, got[i-1].Sequence+1, got[i].Sequence)
			require.Less(t, got[i-1].Position, got[i].Position)
		}
	}
}

// TestSeek_OfAnInTxProcessAppliesAgainWhatIsSoughtAgainAndNothingElse: effects and
// cursor stay one.
func TestSeek_OfAnInTxProcessAppliesAgainWhatIsSoughtAgainAndNothingElse(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 40)
	sink := &receiver{}
	start(t, process(t, pool, processor.InTx(sink), func(c *processor.Config) { quick(c); c.Checkpoint = 7 }))
	caughtUp(t, pool)
	to, err := source(t, pool).Before(t.Context(), "31")
	require.NoError(t, err)
	seek(t, pool, to)
	caughtUp(t, pool)
	rows, err := pool.Query(t.Context(), `SELECT count(*) FROM dispatch.effect GROUP BY id ORDER BY id`)
	require.NoError(t, err)
	times, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.Equal(t, append(slices.Repeat([]int{1}, 30), slices.Repeat([]int{2}, 10)...), times)
}

// TestSeekGap_IsNoLessThanWhatAWorkerMaySendBeforeACheckpoint: a seek goes on
// behind every number that may have been sent.
func TestSeekGap_IsNoLessThanWhatAWorkerMaySendBeforeACheckpoint(t *testing.T) {
	t.Parallel()
	config := processor.Config{Process: "sms", Store: &cursor.Store{}, Source: source(t, nil), Dispatch: processor.Each(&receiver{}), Batch: cursor.SeekGap}
	_, err := processor.New(config)
	require.NoError(t, err)
	config.Batch++
	_, err = processor.New(config)
	require.ErrorContains(t, err, "batch must be between 1 and 10000, got 10001")
}
