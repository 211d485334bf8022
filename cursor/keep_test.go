package cursor_test

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// linked is a worker behind a link, and its lease.
func linked(t *testing.T, timeout time.Duration) (*cursor.Lease, *pgtest.Link, *cursor.Store) {
	t.Helper()
	return linkedWith(t, cursor.Config{Timeout: timeout})
}

func linkedWith(t *testing.T, c cursor.Config) (*cursor.Lease, *pgtest.Link, *cursor.Store) {
	t.Helper()
	pool := database(t)
	created(t, pool, "b")
	address, link := pgtest.Proxy(t, pgtest.URL(t))
	far, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	c.Schema, c.Worker = schema, "a"
	s, err := cursor.NewStore(far, c)
	require.NoError(t, err)
	lease := acquire(t, s)
	t.Cleanup(func() {
		link.Cut()
		lease.Release()
		far.Close()
	})
	return lease, link, store(t, pool, "b")
}

// takeOver acquires as soon as the server lets it.
func takeOver(t *testing.T, s *cursor.Store) *cursor.Lease {
	t.Helper()
	var lease *cursor.Lease
	require.Eventually(t, func() bool {
		var err error
		lease, err = s.Acquire(t.Context(), "sms")
		return err == nil
	}, patience, 5*time.Millisecond)
	t.Cleanup(lease.Release)
	return lease
}

func TestLease_IsKeptWhileASinkCallRuns(t *testing.T) {
	t.Parallel()
	// A worker that does not hear of its server for half of the time-out gives up,
	// rightly: on a busy machine that is soon if the time-out is short.
	const timeout = 5 * time.Second
	lease, _, b := linked(t, timeout)
	select {
	case <-lease.Context().Done():
		t.Fatal("the lease ended: ", cause(lease))
	case <-time.After(2 * timeout): // the server waits for one
	}
	require.NoError(t, lease.Held())
	_, err := b.Acquire(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrHeld)
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}

// TestLease_EndsBeforeTheServerGivesTheLockAway: the network goes dead. The
// worker must have stopped delivering when another one starts.
func TestLease_EndsBeforeTheServerGivesTheLockAway(t *testing.T) {
	t.Parallel()
	lease, link, b := linked(t, 2*time.Second)
	ended := make(chan time.Time, 1)
	go func() {
		<-lease.Context().Done()
		ended <- time.Now()
	}()
	link.Stall()
	takeOver(t, b)
	took := time.Now()
	select {
	case at := <-ended:
		require.ErrorIs(t, cause(lease), cursor.ErrLeaseLost)
		t.Logf("gave up %v before the server gave the lock away", took.Sub(at))
	default:
		t.Fatal("another worker holds the lease, and this one does not know")
	}
}

func TestLease_EndsWhenItsSessionIsTerminated(t *testing.T) {
	t.Parallel()
	lease, _, b := linked(t, 5*time.Second)
	_, err := b.Look(t.Context(), "sms")
	require.NoError(t, err)
	terminateLease(t)
	require.ErrorIs(t, over(t, lease), cursor.ErrLeaseLost)
	require.ErrorIs(t, lease.Advance(t.Context(), "p1", 1), cursor.ErrLeaseLost)
	next := takeOver(t, b)
	require.Greater(t, next.Epoch(), lease.Epoch())
}

// terminateLease ends the session that holds the lease.
func terminateLease(t *testing.T) {
	t.Helper()
	pool := pgtest.Database(t)
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND starts_with(application_name, $1)`, cursor.ApplicationLease).Scan(&n))
	require.Equal(t, 1, n)
}

// TestHeld_TellsAWorkerThatWasStopped: it slept through its own end, as one that
// was stopped and continued, and asks before it sends the next record.
func TestHeld_TellsAWorkerThatWasStopped(t *testing.T) {
	t.Parallel()
	lease, link, _ := linked(t, 10*time.Second)
	require.NoError(t, lease.Held())
	link.Stall()
	require.NoError(t, lease.Held(), "nothing came, and no ping is due")
	cursor.Age(lease, 6*time.Second)
	require.ErrorIs(t, lease.Held(), cursor.ErrLeaseLost)
}

// TestHeld_TellsAtOnceOfASessionThatWasEnded: its end has arrived, and another
// worker may have the lock since. No ping is due for minutes.
func TestHeld_TellsAtOnceOfASessionThatWasEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *pgtest.Link){
		"by the server":  func(t *testing.T, _ *pgtest.Link) { terminateLease(t) },
		"by the network": func(_ *testing.T, link *pgtest.Link) { link.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease, link, b := linkedWith(t, cursor.Unwatched(cursor.Config{Timeout: 10 * time.Minute}))
			require.NoError(t, lease.Held())
			end(t, link)
			takeOver(t, b)
			require.Eventually(t, func() bool { return lease.Held() != nil }, patience, time.Millisecond)
			require.ErrorIs(t, lease.Held(), cursor.ErrLeaseLost)
		})
	}
}

// TestLease_EndsAtOnceWithItsSession: no method of the lease is called, as during a
// sink call, and no ping is due for minutes.
func TestLease_EndsAtOnceWithItsSession(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, 2*cursor.WatchInterval, 100*time.Millisecond)
	lease, _, _ := linked(t, 10*time.Minute)
	terminateLease(t)
	began := time.Now()
	require.ErrorIs(t, over(t, lease), cursor.ErrLeaseLost)
	t.Logf("after %v", time.Since(began))
}

func TestQuiet_DoesNotWaitForAReader(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer near.Close()
	far, err := listener.Accept()
	require.NoError(t, err)
	require.True(t, cursor.Quiet(near))
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = near.Read(make([]byte, 1))
	}()
	for range 100 { // until the reader waits, and beyond
		require.True(t, cursor.Quiet(near))
		runtime.Gosched()
	}
	require.NoError(t, far.Close())
	<-read
	require.False(t, cursor.Quiet(near))
}

// TestAdvance_WhoseCommitIsUnknownIsTruthfulAboutIt: the connection is cut while
// the checkpoint's answer is on its way. The row tells what holds.
func TestAdvance_WhoseCommitIsUnknownIsTruthfulAboutIt(t *testing.T) {
	t.Parallel()
	for name, fromServer := range map[string]bool{"before the server heard of it": false, "after it was committed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease, link, b := linked(t, 10*time.Second)
			var cut atomic.Bool
			link.OnData(func(from bool, _ []byte) {
				if from == fromServer && cut.CompareAndSwap(false, true) {
					link.Cut()
				}
			})
			require.ErrorIs(t, lease.Advance(t.Context(), "p1", 1), cursor.ErrLeaseLost)
			require.True(t, cut.Load())
			require.ErrorIs(t, cause(lease), cursor.ErrLeaseLost)
			want := cursor.Position("")
			if fromServer {
				want = "p1"
			}
			require.Equal(t, want, takeOver(t, b).Position())
		})
	}
}

func TestLease_WorksThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `CREATE TABLE dispatch.effect (n int)`)
	created(t, pool, "x")
	address := pgtest.PgBouncer(t, pgtest.URL(t))
	var leases []*cursor.Lease
	for _, worker := range []string{"a", "b", "a", "b"} {
		config, err := pgxpool.ParseConfig(address)
		require.NoError(t, err)
		far, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		t.Cleanup(far.Close)
		s := store(t, far, worker)
		lease := takeOver(t, s)
		_, err = store(t, pool, "x").Acquire(t.Context(), "sms")
		require.ErrorIs(t, err, cursor.ErrHeld)
		for _, step := range []string{"1", "2"} {
			to := lease.Position() + cursor.Position(worker+step)
			require.NoError(t, lease.Advance(t.Context(), to, 1))
			require.NoError(t, cause(lease))
		}
		leases = append(leases, lease)
		lease.Release()
	}
	require.EqualValues(t, 4, leases[3].Epoch())
	row, err := store(t, pool, "x").Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, cursor.Position("a1a2b1b2a1a2b1b2"), row.Position)

	var settings int
	far, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(far.Close)
	require.NoError(t, far.QueryRow(t.Context(), `SELECT count(*) FROM pg_settings
		WHERE name IN ('idle_in_transaction_session_timeout', 'statement_timeout') AND setting <> reset_val`).Scan(&settings))
	require.Zero(t, settings, "no setting of a lease is left on a pooled session")
}

// TestHeld_DoesNotTrustALockWhoseAnswerCameLate: the answer was under way, or the
// worker stopped, for so long that the lock went to another one.
func TestHeld_DoesNotTrustALockWhoseAnswerCameLate(t *testing.T) {
	t.Parallel()
	pool := database(t)
	b := created(t, pool, "b")
	address, link := pgtest.Proxy(t, pgtest.URL(t))
	far, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(far.Close)
	a, err := cursor.NewStore(far, cursor.Unwatched(cursor.Config{Schema: schema, Worker: "a", Timeout: time.Second}))
	require.NoError(t, err)
	acquire(t, a).Release() // what follows is one exchange
	answers := make(chan struct{}, 1)
	link.OnData(func(fromServer bool, _ []byte) {
		if fromServer {
			link.OnData(nil)
			link.Stall()
			answers <- struct{}{}
		}
	})
	var lease *cursor.Lease
	var acquired error
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease, acquired = a.Acquire(t.Context(), "sms")
	}()
	<-answers
	takeOver(t, b)
	link.Resume()
	<-done
	require.NoError(t, acquired)
	t.Cleanup(lease.Release)
	require.ErrorIs(t, lease.Held(), cursor.ErrLeaseLost)
}

// TestHeld_AsksAgainWhenTheAnswerIsOld: the worker was stopped before it took the
// answer up, for so long that it says nothing of now. The second one does.
func TestHeld_AsksAgainWhenTheAnswerIsOld(t *testing.T) {
	t.Parallel()
	lease, link, _ := linked(t, 10*time.Minute)
	var asked, answered atomic.Int64
	link.OnData(func(fromServer bool, _ []byte) {
		if !fromServer {
			asked.Add(1)
		} else if answered.Add(1) == 1 {
			cursor.Stopped(lease, 6*time.Minute)
		}
	})
	cursor.Age(lease, 6*time.Minute)
	require.NoError(t, lease.Held())
	require.EqualValues(t, 2, asked.Load())
	require.NoError(t, lease.Held())
	require.EqualValues(t, 2, asked.Load(), "it was answered in time")
}
