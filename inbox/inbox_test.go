package inbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func made(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, box(t, false).SQL())
	pgtest.Exec(t, pool, "CREATE TABLE public.effect (n int GENERATED ALWAYS AS IDENTITY, key text)")
	return pool
}

func box(t *testing.T, refuseGaps bool) *inbox.Inbox {
	t.Helper()
	i, err := inbox.New(inbox.Config{Receiver: "c", RefuseGaps: refuseGaps})
	require.NoError(t, err)
	return i
}

func message(sequence, epoch int64, key string) inbox.Message {
	return inbox.Message{Process: "p", Sequence: sequence, Epoch: epoch, DedupKey: key}
}

// handle applies a message in a transaction of its own. Its effect is a row.
func handle(t *testing.T, pool *pgxpool.Pool, m inbox.Message) (inbox.Outcome, error) {
	return handleIn(t, box(t, false), pool, m)
}

func handleIn(t *testing.T, i *inbox.Inbox, pool *pgxpool.Pool, m inbox.Message) (outcome inbox.Outcome, err error) {
	ctx := t.Context()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		outcome, err = i.Handle(ctx, tx, m, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", m.DedupKey)
			return err
		})
		return err
	})
	return outcome, err
}

func effects(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return pgtest.Value[string](t, pool, "SELECT coalesce(string_agg(key, ' ' ORDER BY n), '') FROM public.effect")
}

func TestHandle_AppliesEachRecordOnce(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, step := range []struct {
		m    inbox.Message
		want inbox.Outcome
	}{
		{message(1, 1, "a"), inbox.Applied},
		{message(1, 1, "a"), inbox.Duplicate},
		{message(2, 1, "b"), inbox.Applied},
		{message(1, 2, "a"), inbox.Duplicate},  // a take-over
		{message(9, 2, "c"), inbox.Applied},    // a gap
		{message(10, 3, "a"), inbox.Duplicate}, // a seek back
		{message(3, 3, "d"), inbox.Applied},    // a dead letter is replayed
	} {
		got, err := handle(t, pool, step.m)
		require.NoError(t, err, step.m)
		require.Equal(t, step.want, got, step.m)
	}
	require.Equal(t, "a b c d", effects(t, pool))
	require.Equal(t, "3 9", pgtest.Value[string](t, pool, "SELECT concat(epoch, ' ', sequence) FROM public.inbox_process"))
}

func TestHandle_RefusesASupersededWorker(t *testing.T) {
	t.Parallel()
	pool := made(t)
	_, err := handle(t, pool, message(1, 1, "a"))
	require.NoError(t, err)
	_, err = handle(t, pool, message(1, 7, "a")) // a duplicate raises the epoch, too
	require.NoError(t, err)
	_, err = handle(t, pool, message(2, 6, "b"))
	var stale *inbox.StaleError
	require.ErrorAs(t, err, &stale)
	require.EqualValues(t, 7, stale.Seen)
	require.EqualError(t, err, `inbox: record "b" of process "p" has epoch 6, and epoch 7 has come: another worker has taken over`)
	require.Equal(t, "a", effects(t, pool))
}

func TestHandle_RefusesGapsIfToldTo(t *testing.T) {
	t.Parallel()
	pool, strict := made(t), box(t, true)
	_, err := handleIn(t, strict, pool, message(5, 1, "a"))
	require.NoError(t, err, "the first is no gap")
	_, err = handleIn(t, strict, pool, message(7, 2, "c"))
	var gap *inbox.GapError
	require.ErrorAs(t, err, &gap)
	require.EqualValues(t, 5, gap.Last)
	_, err = handleIn(t, strict, pool, message(6, 2, "b"))
	require.NoError(t, err)
	_, err = handleIn(t, strict, pool, message(7, 2, "c"))
	require.NoError(t, err)
	require.Equal(t, "a b c", effects(t, pool))
}

func TestHandle_AnEffectThatFailsLeavesNoNote(t *testing.T) {
	t.Parallel()
	pool := made(t)
	broken := errors.New("broken")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := inbox.Handle(t.Context(), tx, "c", message(1, 1, "a"), func(context.Context, pgx.Tx) error { return broken })
		return err
	})
	require.ErrorIs(t, err, broken)
	got, err := handle(t, pool, message(1, 1, "a"))
	require.NoError(t, err)
	require.Equal(t, inbox.Applied, got)
}

// Two calls with one message at the same time: one applies it, and the other waits and finds that.
func TestHandle_TwoAtOnceApplyOnce(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for i := range 50 {
		var outcomes [8]inbox.Outcome
		var group sync.WaitGroup
		for j := range outcomes {
			group.Go(func() { outcomes[j], _ = handle(t, pool, message(int64(i+1), 1, string(rune('A'+i)))) })
		}
		group.Wait()
		applied := 0
		for _, o := range outcomes {
			require.NotZero(t, o)
			if o == inbox.Applied {
				applied++
			}
		}
		require.Equal(t, 1, applied)
	}
	require.Equal(t, 50, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.effect"))
}

func TestHandle_RefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	pool := made(t)
	_, err := handle(t, pool, inbox.Message{Process: "p", Sequence: 1, Epoch: 1})
	require.ErrorIs(t, err, inbox.ErrMessage)
	require.ErrorContains(t, err, "it lacks a process, a dedup key, a sequence or an epoch")
}

func TestPrune_ForgetsOldKeysALittleAtATime(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for i, key := range []string{"a", "b", "c"} {
		_, err := handle(t, pool, message(int64(i+1), 1, key))
		require.NoError(t, err)
	}
	pgtest.Exec(t, pool, "UPDATE public.inbox SET received_at = received_at - interval '2 hours' WHERE dedup_key <> 'c'")
	for _, want := range []int64{1, 1, 0} {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			n, err := box(t, false).Prune(t.Context(), tx, time.Hour, 1)
			require.Equal(t, want, n)
			return err
		}))
	}
	require.Equal(t, "c", pgtest.Value[string](t, pool, "SELECT string_agg(dedup_key, ' ') FROM public.inbox"))
}
