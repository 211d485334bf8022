package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func deadLetters(c *processor.Config) {
	quick(c)
	c.DeadLetter = true
	c.Retry.Attempts = 2
}

// letters are the open dead letters as "id/attempts".
func letters(t testing.TB, pool *pgxpool.Pool) (found []string) {
	t.Helper()
	all, err := operator.New(store(t, pool)).DeadLetters(t.Context(), "sms", false, 100)
	require.NoError(t, err)
	for _, d := range all {
		found = append(found, fmt.Sprintf("%s/%d", d.RecordID, d.Failure.Attempts))
	}
	return found
}

func TestDeadLetter_PutsTheRecordAsideAndKeepsTheOrderOfTheOthers(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"Each":  func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"InTx":  func(r *receiver) processor.Dispatch { return processor.InTx(r) },
		"Batch": func(r *receiver) processor.Dispatch { return processor.Batch(oneByOne(r)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 6)
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				switch d.ID {
				case "2":
					return processor.Permanent(errRefused)
				case "5":
					return errRefused
				}
				return nil
			}}
			p := process(t, pool, dispatch(sink), func(c *processor.Config) { deadLetters(c); c.Checkpoint = 3 })
			require.NoError(t, p.Drain(t.Context()))
			require.Equal(t, []string{"2/1", "5/2"}, letters(t, pool))
			now := row(t, pool)
			require.EqualValues(t, 6, now.Sequence)
			require.Nil(t, now.Failure)
			if name == "InTx" {
				require.Equal(t, []string{"1", "3", "4", "6"}, pgtest.Value[[]string](t, pool, "SELECT array_agg(id::text ORDER BY id) FROM dispatch.effect"))
			}
		})
	}
}

// oneByOne is a receiver that takes batches.
func oneByOne(r *receiver) processor.BatchSink {
	return processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
		for i, d := range ds {
			if err := r.Deliver(ctx, d); err != nil {
				return i, err
			}
		}
		return len(ds), nil
	})
}

func TestDeadLetter_AnUnknownOutcomeHaltsAllTheSame(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"time-out": context.DeadlineExceeded,
		"marked":   processor.Unknown(errors.New("the connection was lost")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 2)
			p := process(t, pool, processor.Each(&receiver{answer: failing("1", 9, failure)}), func(c *processor.Config) {
				deadLetters(c)
				c.HaltOnTimeout = true
			})
			require.True(t, processor.IsUnknown(failure))
			var halt *processor.HaltError
			require.ErrorAs(t, p.Drain(t.Context()), &halt)
			require.Equal(t, cursor.ClassUnknown, halt.Failure.Class)
			require.Empty(t, letters(t, pool))
		})
	}
	require.NoError(t, processor.Unknown(nil))
}

// A busy worker stands aside, the dead letter is delivered under an epoch that is
// newer than all it has sent, and the order of the others is kept.
func TestReplay_DeliversBesideABusyWorkerInAnEpochOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]func(*receiver) processor.Dispatch{
		"Each": func(r *receiver) processor.Dispatch { return processor.Each(r) },
		"InTx": func(r *receiver) processor.Dispatch { return processor.InTx(r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			const records = 100_000
			insert(t, pool, records)
			mended := make(chan struct{})
			sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
				select {
				case <-mended:
					return nil
				default:
				}
				if d.ID == "2" {
					return processor.Permanent(errRefused)
				}
				return nil
			}}
			stop := start(t, process(t, pool, dispatch(sink), deadLetters))
			eventually(t, "the record is put aside", func() bool { return len(letters(t, pool)) == 1 })
			busy := row(t, pool).Epoch
			close(mended)

			open, err := operator.New(store(t, pool)).DeadLetters(t.Context(), "sms", false, 1)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			operator := process(t, pool, dispatch(sink), deadLetters)
			require.NoError(t, operator.Replay(ctx, open[0].ID, cursor.Decision{Actor: "me", Reason: "mended"}))
			then := row(t, pool).Sequence
			require.Less(t, then, int64(records), "the worker is not through")
			require.Empty(t, letters(t, pool))
			require.ErrorIs(t, operator.Replay(ctx, open[0].ID, cursor.Decision{Actor: "me", Reason: "again"}), cursor.ErrNoDeadLetter)

			eventually(t, "the worker goes on", func() bool { return row(t, pool).Sequence > then })
			require.NoError(t, stop())
			again := sink.attemptsOf("2")
			require.Equal(t, 2, again[len(again)-1].Attempt)
			require.EqualValues(t, 2, again[len(again)-1].Sequence)
			require.Greater(t, again[len(again)-1].Epoch, busy)
		})
	}
}

func TestReplay_ThatFailsLeavesTheDeadLetterOpen(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	sink := &receiver{answer: failing("1", 9, processor.Permanent(errRefused))}
	p := process(t, pool, processor.InTx(sink), deadLetters)
	require.NoError(t, p.Drain(t.Context()))
	before := row(t, pool)
	elsewhere := cursor.Position("at.int:elsewhere")
	require.ErrorIs(t, p.Replay(t.Context(), 1, cursor.Decision{Actor: "me", Expect: &elsewhere}), cursor.ErrMoved)
	require.NoError(t, p.Replay(t.Context(), 1, cursor.Decision{Actor: "me", DryRun: true}))
	require.Equal(t, before.Epoch, row(t, pool).Epoch, "nothing was asked of the sink yet")
	require.ErrorIs(t, p.Replay(t.Context(), 1, cursor.Decision{Actor: "me"}), errRefused)
	require.Equal(t, []string{"1/1"}, letters(t, pool))
	require.Equal(t, before.Position, row(t, pool).Position)
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM dispatch.effect WHERE id = 1"))
}

// Even a short delay, which is waited out under the lease, stands in the row: a
// worker that dies meanwhile does not start the count anew.
func TestFailed_EveryAttemptStandsInTheRowForWhoeverComesNext(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	var well atomic.Bool
	sink := &receiver{answer: func(context.Context, processor.Delivery) error {
		if well.Load() {
			return nil
		}
		return errRefused
	}}
	const delay = 900 * time.Millisecond
	stop := start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Retry = processor.Retry{Initial: delay, Max: delay, Jitter: processor.NoJitter}
	}))
	eventually(t, "the attempt stands in the row", func() bool { return row(t, pool).Failure != nil })
	require.Equal(t, cursor.ClassTransient, row(t, pool).Failure.Class)
	// Not by trying to take it: between the commit of the attempt and the next transaction that would succeed. Three
	// times, since a worker that gives the lease back has it for the moment of an attempt, too.
	held, attempts := 0, 0
	eventually(t, "the delay is waited out under the lease", func() bool {
		lockers, err := store(t, pool).Lockers(t.Context())
		require.NoError(t, err)
		now := len(sink.attempts())
		if len(lockers) == 1 && lockers[0].Worker() && now == attempts {
			held++
		} else {
			held, attempts = 0, now
		}
		return held == 3
	})
	well.Store(true)
	eventually(t, "the last attempt", func() bool { return row(t, pool).Sequence == 1 })
	require.NoError(t, stop())
	for i, attempt := range sink.attempts() {
		require.Equal(t, fmt.Sprintf("1/%d", i+1), attempt)
	}
}

// TestReplay_ByTwoOperatorsAtOnceDeliversEachLetterOnce: the second one found it
// open when it looked, before it got the lease.
func TestReplay_ByTwoOperatorsAtOnceDeliversEachLetterOnce(t *testing.T) {
	t.Parallel()
	replayedBeside(t, func(p *processor.Process, _ *pgxpool.Pool) error {
		return p.Replay(t.Context(), 1, cursor.Decision{Actor: "you", Reason: "both"})
	}, 2)
}

// TestReplay_OfALetterThatIsDiscardedMeanwhileSendsNothing: the other way round, a
// letter that is being replayed is not discarded.
func TestReplay_OfALetterThatIsDiscardedMeanwhileSendsNothing(t *testing.T) {
	t.Parallel()
	replayedBeside(t, func(_ *processor.Process, pool *pgxpool.Pool) error {
		_, err := operator.New(store(t, pool)).Discard(t.Context(), 1, cursor.Decision{Actor: "you", Reason: "both"})
		return err
	}, 2)
}

// replayedBeside replays letter 1 and has another operator act on it while the
// sink has it: the record must have been sent so often by then, and one of both
// operators must have been refused.
func replayedBeside(t *testing.T, act func(*processor.Process, *pgxpool.Pool) error, sent int) {
	t.Helper()
	pool := database(t)
	insert(t, pool, 1)
	var calls atomic.Int32
	inCall, goOn := make(chan struct{}), make(chan struct{})
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		if calls.Add(1) == 1 {
			return processor.Permanent(errRefused)
		}
		if calls.Load() == 2 {
			close(inCall)
			<-goOn
		}
		return nil
	}}
	require.NoError(t, process(t, pool, processor.Each(sink), deadLetters).Drain(t.Context()))
	require.Len(t, letters(t, pool), 1)

	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		p := process(t, pool, processor.Each(sink), deadLetters)
		first <- p.Replay(t.Context(), 1, cursor.Decision{Actor: "me", Reason: "both"})
	}()
	<-inCall
	go func() { second <- act(process(t, pool, processor.Each(sink), deadLetters), pool) }()
	eventually(t, "the other operator waits", func() bool {
		var waiting bool
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database IS NULL
			AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database()))`).Scan(&waiting))
		return waiting
	})
	close(goOn)
	require.NoError(t, <-first)
	require.ErrorIs(t, <-second, cursor.ErrNoDeadLetter)
	require.EqualValues(t, sent, calls.Load())
	require.Empty(t, letters(t, pool))
}
