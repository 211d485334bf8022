package ending_test

import (
	"context"
	"strings"
	"syscall"
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

// TestSQL_EndsNoCommitThatIsWritten: a moment later such a COMMIT waits for a standby, and the signal has that wait given up.
func TestSQL_EndsNoCommitThatIsWritten(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"fsync": "on", "synchronous_commit": "on", "commit_delay": "100000", "commit_siblings": "0"})
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	_, err := pool.Exec(t.Context(), "CREATE TABLE public.t ()")
	require.NoError(t, err)
	writer, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() { // waits for commit_delay, with the lock of the log, nearly all the time
		defer close(ended)
		_, _ = writer.Exec(t.Context(), "DO $$ BEGIN LOOP INSERT INTO public.t DEFAULT VALUES; COMMIT; END LOOP; END $$")
	}()
	pid := int(writer.Conn().PgConn().PID())
	stop := func(sig syscall.Signal) { require.NoError(t, syscall.Kill(pid, sig)) }
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		<-ended
		writer.Release()
	})
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	known := ending.Transaction{PID: int(conn.PgConn().PID())}
	committed := make(chan error, 1)
	waits := func() bool {
		var event *string
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT wait_event FROM pg_stat_activity WHERE pid = $1", known.PID).Scan(&event))
		return event != nil && strings.EqualFold(*event, "WALWrite")
	}
	stopped := func() bool { // reports whether the COMMIT waits for the log then
		_, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO public.t DEFAULT VALUES")
		require.NoError(t, err)
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT xact_start FROM pg_stat_activity WHERE pid = $1", known.PID).Scan(&known.Since))
		stop(syscall.SIGSTOP)
		go func() {
			_, err := conn.Exec(context.WithoutCancel(t.Context()), "COMMIT")
			committed <- err
		}()
		for !waits() {
			select {
			case err := <-committed:
				require.NoError(t, err)
				stop(syscall.SIGCONT)
				return false
			default:
			}
		}
		return true
	}
	for !stopped() {
	}
	_, err = pool.Exec(t.Context(), known.SQL())
	require.NoError(t, err)
	stop(syscall.SIGCONT)
	require.NoError(t, <-committed)
	require.NoError(t, conn.Ping(t.Context()))
}
