package ending_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/ending"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// session is one of its own, beside the pool that looks at it.
type session struct {
	pool *pgxpool.Pool
	conn *pgx.Conn
}

func newSession(t *testing.T, server *pglocal.Server, pool *pgxpool.Pool) session {
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return session{pool, conn}
}

// begin is a transaction of the session that has written.
func (s session) begin(t *testing.T) ending.Transaction {
	t.Helper()
	_, err := s.conn.Exec(t.Context(), "BEGIN; INSERT INTO public.t DEFAULT VALUES")
	require.NoError(t, err)
	x := ending.Transaction{PID: int(s.conn.PgConn().PID())}
	require.NoError(t, s.pool.QueryRow(t.Context(), `SELECT l.virtualtransaction, a.xact_start FROM pg_stat_activity a JOIN pg_locks l USING (pid)
		WHERE pid = $1 LIMIT 1`, x.PID).Scan(&x.Virtual, &x.Since))
	return x
}

// commit is the answer to a COMMIT that waits for something, or has not.
func (s session) commit(t *testing.T, event string) (answer <-chan error, waits bool) {
	t.Helper()
	committed := make(chan error, 1)
	go func() {
		_, err := s.conn.Exec(context.WithoutCancel(t.Context()), "COMMIT")
		committed <- err
	}()
	for len(committed) == 0 && !waits {
		require.NoError(t, s.pool.QueryRow(t.Context(), "SELECT coalesce(wait_event, '') ILIKE $2 FROM pg_stat_activity WHERE pid = $1", s.conn.PgConn().PID(), event).Scan(&waits))
	}
	return committed, waits
}

// TestSQL_EndsNoOtherTransactionAndNoCommitThatWaitsForAStandby: an operator runs it later, and the session may do something else then.
func TestSQL_EndsNoOtherTransactionAndNoCommitThatWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"synchronous_standby_names": "away", "synchronous_commit": "local"})
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
			s := newSession(t, server, pool)
			begin := func() string {
				x := s.begin(t)
				known(&x)
				return x.SQL()
			}
			former := begin()
			_, err := s.conn.Exec(t.Context(), "ROLLBACK")
			require.NoError(t, err)
			do(former)
			require.NoError(t, s.conn.Ping(t.Context()), "it is idle")
			now := begin()
			do(former)
			require.NoError(t, s.conn.Ping(t.Context()), "it is in the next transaction")

			_, err = s.conn.Exec(t.Context(), "SET synchronous_commit = on")
			require.NoError(t, err)
			answer, waits := s.commit(t, "SyncRep")
			for !waits { // the server has not taken note of its standbys
				require.NoError(t, <-answer)
				now = begin()
				answer, waits = s.commit(t, "SyncRep")
			}
			do(now)
			do(fmt.Sprintf("SELECT pg_cancel_backend(%d)", s.conn.PgConn().PID()))
			require.NoError(t, <-answer)
			require.NoError(t, s.conn.Ping(t.Context()), "its COMMIT waited for a standby")

			do(begin())
			require.Error(t, s.conn.Ping(t.Context()))
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
	signal := func(sig syscall.Signal) { require.NoError(t, syscall.Kill(pid, sig)) }
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		<-ended
		writer.Release()
	})
	s := newSession(t, server, pool)
	x := s.begin(t)
	signal(syscall.SIGSTOP)
	answer, waits := s.commit(t, "WALWrite")
	for !waits { // it did not have the lock
		require.NoError(t, <-answer)
		signal(syscall.SIGCONT)
		x = s.begin(t)
		signal(syscall.SIGSTOP)
		answer, waits = s.commit(t, "WALWrite")
	}
	_, err = pool.Exec(t.Context(), x.SQL())
	require.NoError(t, err)
	signal(syscall.SIGCONT)
	require.NoError(t, <-answer)
	require.NoError(t, s.conn.Ping(t.Context()))
}
