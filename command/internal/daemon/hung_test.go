package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// hosts is a connection string with the hosts of both servers, the first one first.
func hosts(t testing.TB, first, second *pglocal.Server) string {
	t.Helper()
	u, err := url.Parse(first.URL())
	require.NoError(t, err)
	u.Host = fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", first.Port(), second.Port())
	return with(t, u.String(), "target_session_attrs", "read-write")
}

// pair is a primary with tables, and its standby.
func pair(t testing.TB) (primary, standby *pglocal.Server, onPrimary, onStandby *pgxpool.Pool) {
	t.Helper()
	primary = pgtest.Server(t, nil)
	standby = pgtest.Standby(t, primary)
	onPrimary, onStandby = pgtest.Pool(t, primary.URL(), pgtest.PoolConfig{}), pgtest.Pool(t, standby.URL(), pgtest.PoolConfig{})
	migrate(t, onPrimary, primary.URL())
	return primary, standby, onPrimary, onStandby
}

// hang stops every process of the primary, whose kernel goes on to accept connections, and
// promotes the standby.
func hang(t testing.TB, primary *pglocal.Server, onPrimary, onStandby *pgxpool.Pool) time.Time {
	t.Helper()
	onPrimary.Close()
	require.NoError(t, primary.Freeze())
	t.Cleanup(func() { require.NoError(t, primary.Thaw()) })
	hung := time.Now()
	exec(t, onStandby, "SELECT pg_promote(true, 60)")
	return hung
}

func replayed(t testing.TB, onStandby *pgxpool.Pool, sequence int) {
	t.Helper()
	untilTrue(t, onStandby, "SELECT sequence = $1 FROM od.cursor", sequence)
}

// TestRun_AHungPrimaryIsLeftForThePromotedStandby: connections that are idle, or wait in a
// plain read, lead to the new primary.
func TestRun_AHungPrimaryIsLeftForThePromotedStandby(t *testing.T) {
	t.Parallel()
	primary, standby, onPrimary, onStandby := pair(t)
	m := monitor(t, configure(t, hosts(t, primary, standby), webhookTo(t, func(http.ResponseWriter, *http.Request) {})))
	insert(t, onPrimary, 5)
	m.until("sequence", is(5))
	replayed(t, onStandby, 5)

	hung := hang(t, primary, onPrimary, onStandby)
	m.answers("/readyz", http.StatusServiceUnavailable, "") // while nothing can be read
	insert(t, onStandby, 3)
	m.until("records_delivered_total", is(8))
	t.Log("delivered by the new primary after", time.Since(hung))
	m.answers("/readyz", http.StatusOK, "")
}

// TestRun_BusyProcessesLeaveAHungPrimary: an advance may wait half a minute for a
// synchronous standby, but not for a server that hangs.
func TestRun_BusyProcessesLeaveAHungPrimary(t *testing.T) {
	t.Parallel()
	primary, standby, onPrimary, onStandby := pair(t)
	var processes strings.Builder
	var calls [3]atomic.Int64
	for i := range calls {
		one := webhookTo(t, func(http.ResponseWriter, *http.Request) {
			calls[i].Add(1)
			time.Sleep(3 * time.Millisecond) // what a receiver takes, so that there is always more to do
		})
		processes.WriteString(strings.Replace(one, "  a:", fmt.Sprintf("  p%d:", i), 1))
	}
	insert(t, onPrimary, 50_000)
	m := monitor(t, configure(t, hosts(t, primary, standby), processes.String()))
	all := func(least [3]int64) func() bool {
		return func() bool {
			for i := range calls {
				if calls[i].Load() < least[i] {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, all([3]int64{50, 50, 50}), patience, 20*time.Millisecond)
	hung := hang(t, primary, onPrimary, onStandby)
	var least [3]int64
	for i := range calls {
		least[i] = calls[i].Load() + 10 // more than was on its way
	}
	require.Eventually(t, all(least), patience, 20*time.Millisecond)
	t.Log("all processes deliver from the new primary after", time.Since(hung))
	require.Contains(t, m.log.String(), "the server is silent")
	require.NotContains(t, m.log.String(), "no answer from the database within 30s")
	m.stop()
	require.NoError(t, waittest.Receive(t, m.done, "the run ends"))
}

// TestPool_ASilentHostLeavesTimeForTheNext: no wait for a connection is used up by one host.
func TestPool_ASilentHostLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()
	database(t)
	both, l := silentFirst(t)
	l.Stall()
	require.Equal(t, 3*time.Second, daemon.PoolConfig(t, both, 1).ConnConfig.ConnectTimeout)
	require.NoError(t, drain(t, configure(t, both, stdoutProcess)))
}

// silentFirst is a connection string with two hosts that lead to the test's server. The
// first one can be stalled.
func silentFirst(t testing.TB) (string, *pgtest.Link) {
	t.Helper()
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	first, err := url.Parse(address)
	require.NoError(t, err)
	both, err := url.Parse(pgtest.URL(t))
	require.NoError(t, err)
	both.Host = first.Host + "," + both.Host
	return both.String(), l
}

// TestPool_IdleConnectionsToASilentServerAreGivenUpTogether: else each of them is asked,
// one after the other.
func TestPool_IdleConnectionsToASilentServerAreGivenUpTogether(t *testing.T) {
	t.Parallel()
	database(t)
	both, l := silentFirst(t)
	pool := daemon.OpenIdlePool(t, both)
	conns := make([]*pgxpool.Conn, 4)
	for i := range conns {
		var err error
		conns[i], err = pool.Acquire(t.Context())
		require.NoError(t, err)
	}
	for _, conn := range conns {
		conn.Release()
	}
	var asked atomic.Int64
	l.OnData(func(fromServer bool, data []byte) {
		if !fromServer && bytes.Contains(data, []byte("-- ping")) {
			asked.Add(1)
		}
	})
	l.Stall()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	conn.Release()
	require.EqualValues(t, 1, asked.Load())
}

// TestPool_AClosedConnectionToASilentServerMakesRoom: before the driver by itself would
// have taken leave of the server.
func TestPool_AClosedConnectionToASilentServerMakesRoom(t *testing.T) {
	t.Parallel()
	database(t)
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	driver := pgtest.Pool(t, address, pgtest.PoolConfig{})
	ours := daemon.OpenPool(t, with(t, address, "connect_timeout", "2"))
	t.Cleanup(l.Close)
	pools := []*pgxpool.Pool{driver, ours}
	conns := make([]*pgxpool.Conn, len(pools))
	for i, pool := range pools {
		var err error
		conns[i], err = pool.Acquire(t.Context())
		require.NoError(t, err)
	}
	l.Stall()
	for _, conn := range conns {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := conn.Exec(ctx, "SELECT 1")
		cancel()
		require.Error(t, err)
		conn.Release()
	}
	require.Eventually(t, func() bool { return ours.Stat().TotalConns() == 0 }, patience, time.Millisecond)
	require.EqualValues(t, 1, driver.Stat().TotalConns())
}

// TestReadyz_WaitsForAProcessThatCanRead: that the looker is answered is not enough.
func TestReadyz_WaitsForAProcessThatCanRead(t *testing.T) {
	t.Parallel()
	pool := database(t)
	m := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	m.answers("/readyz", http.StatusOK, "ok\n")
	exec(t, pool, "ALTER TABLE public.bookings RENAME TO moved")
	m.answers("/readyz", http.StatusServiceUnavailable, "no process can read its source: see the log")
	exec(t, pool, "ALTER TABLE public.moved RENAME TO bookings")
	m.answers("/readyz", http.StatusOK, "ok\n")
}
