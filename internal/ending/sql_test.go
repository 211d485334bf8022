package ending_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/ending"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestSQL_EndsNoOtherTransactionAndNoCommitThatWaitsForAStandby: an operator runs it later, and the session may do something else then.
func TestSQL_EndsNoOtherTransactionAndNoCommitThatWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	do := func(sql string) {
		t.Helper()
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	do("CREATE TABLE public.t ()")
	for name, known := range map[string]func(*ending.Transaction){
		"all":            func(*ending.Transaction) {},
		"no time":        func(x *ending.Transaction) { x.Since = time.Time{} },
		"by its message": func(x *ending.Transaction) { x.Virtual = "" },
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := pgx.Connect(t.Context(), server.URL())
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			begin := func() string {
				_, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO public.t DEFAULT VALUES")
				require.NoError(t, err)
				x := ending.Transaction{PID: int(conn.PgConn().PID())}
				require.NoError(t, pool.QueryRow(t.Context(), `SELECT l.virtualtransaction, a.xact_start FROM pg_stat_activity a JOIN pg_locks l USING (pid)
					WHERE pid = $1 LIMIT 1`, x.PID).Scan(&x.Virtual, &x.Since))
				known(&x)
				return x.SQL()
			}
			former := begin()
			_, err = conn.Exec(t.Context(), "ROLLBACK")
			require.NoError(t, err)
			do(former)
			require.NoError(t, conn.Ping(t.Context()), "it is idle")
			now := begin()
			do(former)
			require.NoError(t, conn.Ping(t.Context()), "it is in the next transaction")

			do("ALTER SYSTEM SET synchronous_standby_names = 'away'")
			do("SELECT pg_reload_conf()")
			require.Eventually(t, func() bool {
				var names string
				require.NoError(t, conn.QueryRow(t.Context(), "SHOW synchronous_standby_names").Scan(&names))
				return names == "away"
			}, time.Minute, time.Millisecond)
			committed := make(chan error, 1)
			go func() {
				_, err := conn.Exec(context.WithoutCancel(t.Context()), "COMMIT")
				committed <- err
			}()
			require.Eventually(t, func() bool {
				var waits bool
				require.NoError(t, pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')").Scan(&waits))
				return waits
			}, time.Minute, time.Millisecond)
			do(now)
			do("ALTER SYSTEM RESET synchronous_standby_names")
			do("SELECT pg_reload_conf()")
			require.NoError(t, <-committed)
			require.NoError(t, conn.Ping(t.Context()), "its COMMIT waited for a standby")

			do(begin())
			require.Error(t, conn.Ping(t.Context()))
		})
	}
	require.Empty(t, ending.Transaction{PID: 7}.SQL())
}
