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
	return session{pool, pgtest.Connect(t, server.URL())}
}

// begin is a transaction of the session that has written.
func (s session) begin(t *testing.T) ending.Transaction {
	t.Helper()
	pgtest.Exec(t, s.conn, "BEGIN; INSERT INTO public.t DEFAULT VALUES")
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
		waits = pgtest.Value[bool](t, s.pool, "SELECT coalesce(wait_event, '') ILIKE $2 FROM pg_stat_activity WHERE pid = $1", s.conn.PgConn().PID(), event)
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
		pgtest.Exec(t, pool, sql)
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
			pgtest.Exec(t, s.conn, "ROLLBACK")
			do(former)
			require.NoError(t, s.conn.Ping(t.Context()), "it is idle")
			now := begin()
			do(former)
			require.NoError(t, s.conn.Ping(t.Context()), "it is in the next transaction")

			pgtest.Exec(t, s.conn, "SET synchronous_commit = on")
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
	pgtest.Exec(t, pool, "CREATE TABLE public.t ()")
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
	pgtest.Exec(t, pool, x.SQL())
	signal(syscall.SIGCONT)
	require.NoError(t, <-answer)
	require.NoError(t, s.conn.Ping(t.Context()))
}
