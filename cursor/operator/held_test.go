package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The lock takes no right: a session of any role may have it, also outside a transaction, and stops seeks and removals.
func TestHeld_NamesTheSessionThatHasTheLock(t *testing.T) {
	t.Parallel()
	pool := database(t)
	o := operator.New(created(t, pool, "a"))
	conn, err := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{}).Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	exec(t, conn, "SET application_name = E'evil\\x1b[31m'")
	take := func(name string) int {
		t.Helper()
		return pgtest.Value[int](t, conn, "SELECT pg_backend_pid() FROM pg_advisory_lock(hashtextextended('"+name+"', 0))")
	}
	requireHeld := func(err error, pid int) {
		t.Helper()
		var held *operator.HeldError
		require.ErrorAs(t, err, &held)
		require.False(t, held.Ours())
		require.Equal(t, pid, held.Holder.PID)
		require.WithinDuration(t, time.Now(), held.Holder.Since, time.Hour)
		require.ErrorContains(t, err, fmt.Sprintf("if it does not end by itself: SELECT pg_terminate_backend(%d)", pid))
		require.ErrorContains(t, err, fmt.Sprintf("pid %d (application \"evil", pid))
		require.NotContains(t, err.Error(), "\x1b")
	}
	prune := func() error {
		return o.Prune(t.Context(), `public."a\b"`, 0, func(context.Context, pgx.Tx, []operator.Standing) (none operator.Removal, err error) {
			return none, nil
		})
	}
	require.NoError(t, prune())
	for _, name := range []string{"ordered-dispatcher seek", `ordered-dispatcher pruned public."a\b"`} {
		pid := take(name)
		err := prune()
		require.ErrorIs(t, err, operator.ErrBusy)
		requireHeld(err, pid)
		exec(t, conn, "SELECT pg_advisory_unlock_all()")
	}

	pid := take("ordered-dispatcher seek")
	brief := alice
	brief.Timeout = 50 * time.Millisecond
	_, err = o.Seek(t.Context(), "sms", "p2", brief)
	requireHeld(err, pid)
	exec(t, conn, "SELECT pg_advisory_unlock_all()")
	_, err = o.Seek(t.Context(), "sms", "p2", alice)
	require.NoError(t, err)

	pid = take("ordered-dispatcher drop public.bookings")
	requireHeld(o.Drop(t.Context(), "public.bookings", nil), pid)
}
