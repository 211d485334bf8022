package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

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
	var late *inbox.LateError
	_, err := handle(t, pool, message(1, 1, "a"))
	require.ErrorAs(t, err, &late, "an old request is refused by its number")
	outcome, err := handle(t, pool, message(4, 2, "a"))
	require.NoError(t, err)
	require.Equal(t, inbox.Applied, outcome, "an operator has sought back")
}

// With 0 or less, all keys would go.
func TestPrune_NeedsATimeToKeep(t *testing.T) {
	t.Parallel()
	i := box(t, false)
	for _, keep := range []time.Duration{0, -time.Hour} {
		_, err := i.Prune(t.Context(), nil, keep, 10)
		require.EqualError(t, err, "inbox: prune: keep and limit must be positive, got "+keep.String()+" and 10")
		require.ErrorContains(t, i.RunPrune(t.Context(), db{}, inbox.PruneConfig{Keep: keep}), "Keep must be positive")
	}
	_, err := i.Prune(t.Context(), nil, time.Hour, 0)
	require.Error(t, err)
}

// logged has the message of each entry.
type logged chan string

func (logged) Enabled(context.Context, slog.Level) bool { return true }
func (l logged) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l logged) WithGroup(string) slog.Handler          { return l }
func (l logged) Handle(_ context.Context, r slog.Record) error {
	select {
	case l <- r.Message:
	default:
	}
	return nil
}

func TestRunPrune_GoesOnUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	pool := made(t)
	pgtest.Exec(t, pool, "ALTER TABLE public.inbox RENAME TO away")
	log, stop := make(logged, 1), errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- box(t, false).RunPrune(ctx, pool, inbox.PruneConfig{Keep: time.Hour, Every: time.Millisecond, Logger: slog.New(log)})
	}()
	require.Equal(t, "the inbox was not pruned", <-log)
	pgtest.Exec(t, pool, `INSERT INTO public.away (receiver, process, dedup_key, received_at)
		SELECT r, 'p', n::text, clock_timestamp() - interval '2 hours' FROM generate_series(1, 1200) n, unnest('{c, other}'::text[]) r
		UNION ALL SELECT 'c', 'p', 'new', clock_timestamp()`)
	pgtest.Exec(t, pool, "ALTER TABLE public.away RENAME TO inbox")
	require.Eventually(t, func() bool {
		return pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox WHERE receiver = 'c'") == 1
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, 1200, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox WHERE receiver = 'other'"))
	cancel(stop)
	require.ErrorIs(t, <-ended, stop)
}
