package operator_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A pass asks again after it has a lock. With one snapshot for all of a transaction it would not see what was committed
// while it waited: a seek, or a row of a partition.
func TestPrune_SeesWhatWasCommittedSinceItBeganWhateverTheDefaultIsolation(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	strict := pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "default_transaction_isolation", "repeatable read"), pgtest.PoolConfig{})
	require.Equal(t, "repeatable read", pgtest.Value[string](t, strict, "SHOW transaction_isolation"))
	err := operator.New(store(t, strict, "w")).Prune(t.Context(), "public.bookings", 0, func(ctx context.Context, tx pgx.Tx, _ []operator.Standing) (none operator.Removal, err error) {
		exec(t, pool, "UPDATE dispatch.cursor SET position = '~'")
		var at string
		require.NoError(t, tx.QueryRow(ctx, "SELECT position FROM dispatch.cursor").Scan(&at))
		require.Equal(t, "~", at)
		return none, nil
	})
	require.NoError(t, err)
}

// A removal may be done although its COMMIT was not answered. Who takes the error of an erasure for a refusal erases again,
// and notes that there was nothing.
func TestPrune_WhoseCommitIsNotAnsweredMayHaveBeenMade(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	address, link := pgtest.Proxy(t, pgtest.URL(t))
	far, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(far.Close)
	made := func() bool { return pgtest.Value[bool](t, pool, "SELECT EXISTS (SELECT FROM dispatch.cursor_pruned)") }
	link.OnData(func(fromServer bool, data []byte) {
		if fromServer && bytes.Contains(data, []byte("COMMIT\x00")) && made() {
			link.Cut()
		}
	})
	refuse := errors.New("no")
	removal := operator.Removal{Through: map[string]cursor.Position{"int id": "int:1"}, Rows: 1, Mode: "delete"}
	remove := func(err error) error {
		return operator.New(store(t, far, "w")).Prune(t.Context(), "public.bookings", 0, func(context.Context, pgx.Tx, []operator.Standing) (operator.Removal, error) {
			return removal, err
		})
	}
	require.Equal(t, refuse, remove(refuse))
	require.False(t, made())
	require.ErrorIs(t, remove(nil), cursor.ErrUncertain)
	require.True(t, made())
}

// The server itself says that nothing was removed.
func TestPrune_WhoseCommitIsRefusedRemovedNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	exec(t, pool, `
		CREATE FUNCTION dispatch.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON dispatch.cursor_pruned DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dispatch.refuse()`)
	removal := operator.Removal{Through: map[string]cursor.Position{"int id": "int:1"}, Rows: 1, Mode: "delete"}
	err := operator.New(s).Prune(t.Context(), "public.bookings", 0, func(context.Context, pgx.Tx, []operator.Standing) (operator.Removal, error) {
		return removal, nil
	})
	require.ErrorContains(t, err, "no")
	require.NotErrorIs(t, err, cursor.ErrUncertain)
}

// What a pass asked before a worker was started with another configuration may be wrong.
func TestPrune_EndsOnceAWorkerWasStartedWithAnotherConfiguration(t *testing.T) {
	t.Parallel()
	pool := database(t)
	o := operator.New(created(t, pool, "a"))
	prune := func(since int64) (called bool, err error) {
		err = o.Prune(t.Context(), "public.bookings", since, func(context.Context, pgx.Tx, []operator.Standing) (none operator.Removal, err error) {
			called = true
			return none, nil
		})
		return called, err
	}
	since, err := o.LastEvent(t.Context())
	require.NoError(t, err)
	exec(t, pool, "INSERT INTO dispatch.cursor_event (process_name, actor, action) VALUES ('a', 'w', 'watch')")
	called, err := prune(since)
	require.NoError(t, err)
	require.True(t, called)

	starting, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer starting.Rollback(context.WithoutCancel(t.Context()))
	require.NoError(t, operator.AwaitRemovals(t.Context(), starting))
	exec(t, starting, "INSERT INTO dispatch.cursor_event (process_name, actor, action) VALUES ('a', 'w', 'configure')")
	requireBusy := func() {
		t.Helper()
		called, err := prune(since)
		require.ErrorIs(t, err, operator.ErrBusy)
		require.False(t, called)
	}
	requireBusy()
	require.NoError(t, starting.Commit(t.Context()))
	requireBusy()
	since, err = o.LastEvent(t.Context())
	require.NoError(t, err)
	_, err = prune(since)
	require.NoError(t, err)
}
