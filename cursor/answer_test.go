package cursor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// TestAnswer_NoCallWaitsForEver: the pool is in use, or the database does not
// answer. Each call says so within its deadline, although its context has none.
func TestAnswer_NoCallWaitsForEver(t *testing.T) {
	t.Parallel()
	const longest = 15 * time.Second // the deadline is 5 s
	d := cursor.Decision{Actor: "me", Reason: "test"}
	calls := map[string]func(context.Context, *cursor.Store) error{
		"look": func(ctx context.Context, s *cursor.Store) error { _, err := s.Look(ctx, "sms"); return err },
		"list": func(ctx context.Context, s *cursor.Store) error { _, err := s.List(context.Background()); return err },
		"history": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).History(ctx, "sms", 1)
			return err
		},
		"last": func(ctx context.Context, s *cursor.Store) error {
			_, _, err := operator.New(s).Last(ctx, "sms", "create")
			return err
		},
		"lockers": func(ctx context.Context, s *cursor.Store) error {
			_, err := s.Lockers(context.Background())
			return err
		},
		"acquire": func(ctx context.Context, s *cursor.Store) error { _, err := s.Acquire(ctx, "sms"); return err },
		"await":   func(ctx context.Context, s *cursor.Store) error { return s.Await(ctx, "sms") },
		"create":  func(ctx context.Context, s *cursor.Store) error { _, err := s.Create(ctx, "new", ""); return err },
		"pause": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).Pause(ctx, "sms", d)
			return err
		},
		"doctor": func(ctx context.Context, s *cursor.Store) error { _, err := operator.New(s).Doctor(ctx); return err },
		"letters": func(ctx context.Context, s *cursor.Store) error {
			_, err := operator.New(s).DeadLetters(ctx, "sms", false, 1)
			return err
		},
	}
	pool := database(t)
	created(t, pool, "b")
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small, err := pgxpool.New(t.Context(), pool.Config().ConnString())
			require.NoError(t, err)
			t.Cleanup(small.Close)
			for range small.Config().MaxConns {
				conn, err := small.Acquire(t.Context())
				require.NoError(t, err)
				t.Cleanup(conn.Release)
			}
			s, err := cursor.NewStore(small, cursor.Config{Schema: schema, Timeout: time.Second})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), longest)
			defer cancel()
			err = call(ctx, s)
			require.ErrorIs(t, err, cursor.ErrNoAnswer)
			require.ErrorContains(t, err, "no connection to the database")
		})
	}
}

// stalled is a store whose database stops answering.
func stalled(t *testing.T) (*cursor.Store, *pgtest.Link) {
	t.Helper()
	created(t, database(t), "b")
	address, link := pgtest.Proxy(t, pgtest.URL(t))
	far, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { link.Cut(); far.Close() })
	s, err := cursor.NewStore(far, cursor.Config{Schema: schema, Timeout: time.Second})
	require.NoError(t, err)
	return s, link
}

func TestAnswer_OfADatabaseThatFallsSilentIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	s, link := stalled(t)
	_, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	link.Stall()
	_, err = s.Look(context.Background(), "sms")
	require.ErrorIs(t, err, cursor.ErrNoAnswer)
	require.Regexp(t, `^read cursor "sms": no answer in time: .*no answer (from the database within|for) 5s`, err.Error(), "whichever of the two deadlines of 5 s was first")
}

// TestStandby_IsNamedAndEveryConnectionIsMadeAnew: a server in recovery refuses to
// begin a transaction that writes with another code than one that is read-only.
func TestStandby_IsNamedAndEveryConnectionIsMadeAnew(t *testing.T) {
	t.Parallel()
	primary := pgtest.Server(t, nil)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: primary.URL(), Schema: schema})
	require.NoError(t, err)
	created(t, pgtest.Pool(t, primary.URL(), pgtest.PoolConfig{}), "a")
	pool := pgtest.Pool(t, pgtest.Standby(t, primary).URL(), pgtest.PoolConfig{MaxConns: 1})
	s := store(t, pool, "b")
	d := cursor.Decision{Actor: "me", Reason: "test"}
	require.Eventually(t, func() bool { _, err := s.Look(t.Context(), "sms"); return err == nil }, patience, 20*time.Millisecond)
	for name, call := range map[string]func() error{
		"acquire": func() error { _, err := s.Acquire(t.Context(), "sms"); return err },
		"pause":   func() error { _, err := operator.New(s).Pause(t.Context(), "sms", d); return err },
		"create":  func() error { _, err := s.Create(t.Context(), "new", ""); return err },
		"await":   func() error { return s.Await(t.Context(), "sms") },
	} {
		_, err := s.Look(t.Context(), "sms")
		require.NoError(t, err)
		made := pool.Stat().NewConnsCount()
		require.ErrorContains(t, call(), "connect to the primary", name)
		_, err = s.Look(t.Context(), "sms")
		require.NoError(t, err)
		require.Greater(t, pool.Stat().NewConnsCount(), made, name)
	}
}

// TestReady_LeavesNoWarningInTheServersLog: each new connection did.
func TestReady_LeavesNoWarningInTheServersLog(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: server.URL(), Schema: schema})
	require.NoError(t, err)
	for range 2 {
		s := created(t, pgtest.Pool(t, server.URL(), pgtest.PoolConfig{}), "a")
		lease := acquire(t, s)
		require.NoError(t, lease.Advance(t.Context(), cursor.Position(time.Now().Format(time.RFC3339Nano)), 1))
		lease.Release()
	}
	require.NotContains(t, serverLog(t, server.DataDir()), "WARNING")
}

func serverLog(t *testing.T, dataDir string) string {
	t.Helper()
	var all strings.Builder
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(dataDir), "*log*"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, name := range logs {
		if text, err := os.ReadFile(name); err == nil {
			all.Write(text)
		}
	}
	require.Contains(t, all.String(), "ready to accept connections")
	return all.String()
}

// TestAwait_WhereTheRoleIsolatesItsTransactions: a row that changed while it was
// waited for is no error of serialization.
func TestAwait_WhereTheRoleIsolatesItsTransactions(t *testing.T) {
	t.Parallel()
	own := database(t)
	lease := acquire(t, created(t, own, "a"))
	pool := pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "default_transaction_isolation", "serializable"), pgtest.PoolConfig{})
	done := make(chan error, 1)
	go func() { done <- store(t, pool, "b").Await(t.Context(), "sms") }()
	waitForLock(t, own)
	cursor.Unyielded(lease)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.ErrorIs(t, cause(lease), cursor.ErrStoodAside)
	lease.Release()
	require.NoError(t, <-done)
}

// TestFailure_AClockThatIsSetBackDoesNotProlongTheWait: nor one that is set forward.
func TestFailure_AClockThatIsSetBackDoesNotProlongTheWait(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	f := poison("p1")
	f.Wait = time.Minute
	require.NoError(t, acquire(t, s).Fail(t.Context(), f))
	exec(t, pool, `UPDATE dispatch.cursor SET last_failed_at = last_failed_at + interval '5 h', next_attempt_at = next_attempt_at + interval '5 h'`)
	row, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Less(t, row.Failure.Wait, time.Minute+time.Second) // the two times are read one after the other
	require.Greater(t, row.Failure.Wait, 50*time.Second)
}
