//go:build measure && linux

package cursor_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// advances are how many are measured.
const advances = 20_000

// TestMeasure_WhatAnAdvanceCosts prints the write-ahead log and the time of processors that
// one checkpoint takes, on a server of its own: go test -tags measure -run TestMeasure_WhatAnAdvanceCosts -v ./cursor
func TestMeasure_WhatAnAdvanceCosts(t *testing.T) {
	server := pgtest.Server(t, map[string]string{"autovacuum": "off"})
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: server.URL(), Schema: schema})
	require.NoError(t, err)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	t.Cleanup(lease.Release)
	advance := func(i int) {
		at := cursor.Position(fmt.Sprintf("at.int:2026-11-23T04:41:42.%06dZ/%020d", i%1_000_000, i))
		require.NoError(t, lease.Advance(t.Context(), at, 1))
	}
	advance(0)
	pid := leasePid(t, pool)
	exec(t, pool, "CHECKPOINT")
	wal, backend, client, began := inserted(t, pool), processTime(t, pid), ownTime(t), time.Now()
	for i := range advances {
		advance(i + 1)
	}
	per := func(d time.Duration) time.Duration { return (d / advances).Round(100 * time.Nanosecond) }
	t.Logf("PostgreSQL %s, %d advances, %v each", server.Version(), advances, per(time.Since(began)))
	t.Logf("write-ahead log: %d bytes each", (inserted(t, pool)-wal)/advances)
	t.Logf("processor: %v of the server, %v of the worker", per(processTime(t, pid)-backend), per(ownTime(t)-client))
}

func inserted(t testing.TB, pool *pgxpool.Pool) (bytes int64) {
	t.Helper()
	return pgtest.Value[int64](t, pool, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
}

func leasePid(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return pgtest.Value[int](t, pool, "SELECT pid FROM pg_stat_activity WHERE starts_with(application_name, $1)", cursor.ApplicationLease)
}

// processTime is that of another process, in user and system mode. The kernel counts it in
// hundredths of a second.
func processTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	require.NoError(t, err)
	system, err := strconv.ParseInt(fields[12], 10, 64)
	require.NoError(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func ownTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
