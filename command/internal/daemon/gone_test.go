package daemon_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// lagging is process a on months, with all of January but its first record and all of February undelivered.
func lagging(t testing.TB, processes string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool := months(t)
	config := configure(t, pgtest.URL(t), processes)
	require.NoError(t, drain(t, config))
	place(t, pool, "a", midJanuary, "running")
	return pool, config
}

// noted is what the audit says of partitions that are gone.
func noted(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	events := []string{}
	err := pool.QueryRow(t.Context(), `SELECT coalesce(json_agg(concat_ws(' ', process_name, detail->>'table', detail->>'fate', detail->>'records', from_position) ORDER BY detail->>'table'), '[]')
		FROM od.cursor_event WHERE action = 'partition_gone'`).Scan(&events)
	require.NoError(t, err)
	return events
}

// seek moves process a to a position.
func seek(t testing.TB, config daemon.Config, position string) {
	t.Helper()
	_, err := operatorOf(t, config).Seek(t.Context(), daemon.ToPosition(cursor.Position(position)), cursor.Decision{Actor: "alice", Reason: "settled"})
	require.NoError(t, err)
}

// guarding is the guard of a worker that has looked at the partitions once.
func guarding(t testing.TB, config daemon.Config) daemon.Guard {
	t.Helper()
	g := daemon.NewGuard(t, config)
	g.Look(t, "a")
	return g
}

// about are the findings that name a partition that is gone.
func about(t testing.TB, config daemon.Config) (gone []daemon.Finding) {
	t.Helper()
	for _, f := range doctor(t, config) {
		if strings.Contains(f.Problem, "may not have been delivered") || strings.Contains(f.Problem, "is there again") {
			gone = append(gone, f)
		}
	}
	return gone
}

// requireLeft requires that one finding names what is gone; none if the severity is "".
func requireLeft(t testing.TB, config daemon.Config, severity daemon.Severity, says string) (f daemon.Finding) {
	t.Helper()
	findings := about(t, config)
	if severity == "" {
		require.Empty(t, findings)
		return f
	}
	require.Len(t, findings, 1)
	require.Equal(t, severity, findings[0].Severity, findings[0].Problem)
	require.Contains(t, findings[0].Problem, says)
	return findings[0]
}

// requireNotedOnce requires that two workers, which have seen everything in place, note once what SQL takes away. The
// cursor is at a position.
func requireNotedOnce(t testing.TB, pool *pgxpool.Pool, config daemon.Config, at, sql string, want ...string) {
	t.Helper()
	g, other := guarding(t, config), guarding(t, config)
	require.Empty(t, noted(t, pool))
	exec(t, pool, sql)
	g.Look(t, "a")
	require.Equal(t, want, noted(t, pool))
	g.Look(t, "a")
	other.Look(t, "a")
	require.Equal(t, want, noted(t, pool), "once, of all workers")
	place(t, pool, "a", at, "running")
}

func TestGuard_NotesAPartitionThatGoesWithUndeliveredRecords(t *testing.T) {
	t.Parallel()
	const byID = "  a: {source: {table: public.events, order: id}, sink: {stdout: {}}, poll: 20ms}\n"
	for name, c := range map[string]struct {
		process, before, sql, at, state string
		want                            []string
		attach                          string
	}{
		"detached": {sql: "ALTER TABLE public.events DETACH PARTITION public.jan", want: []string{"a public.jan detached 1 " + midJanuary},
			attach: "ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ("},
		"dropped":                     {sql: "DROP TABLE public.feb", want: []string{"a public.feb dropped 2 " + midJanuary}},
		"dropped while it is paused":  {sql: "DROP TABLE public.feb", state: "paused", want: []string{"a public.feb dropped 2 " + midJanuary}},
		"detached while it is halted": {sql: "ALTER TABLE public.events DETACH PARTITION public.jan", state: "halted", want: []string{"a public.jan detached 1 " + midJanuary}},
		"two of them":                 {sql: "DROP TABLE public.jan, public.feb", want: []string{"a public.feb dropped 2 " + midJanuary, "a public.jan dropped 1 " + midJanuary}},
		"by id":                       {process: byID, at: "int:00000000000000000001", sql: "DROP TABLE public.feb", want: []string{"a public.feb dropped 2 int:00000000000000000001"}},
		"the default one": {before: "INSERT INTO public.events (created_at) VALUES ('2026-05-05')", sql: "ALTER TABLE public.events DETACH PARTITION public.rest",
			want: []string{"a public.rest detached 1 " + midJanuary}, attach: "ALTER TABLE public.events ATTACH PARTITION public.rest DEFAULT"},
		"it was renamed and moved": {sql: "ALTER TABLE public.events DETACH PARTITION public.jan; CREATE SCHEMA archive; ALTER TABLE public.jan SET SCHEMA archive; ALTER TABLE archive.jan RENAME TO old",
			want: []string{"a public.jan detached 1 " + midJanuary}},
		"a part of a partition": {before: subPartition, sql: "ALTER TABLE public.mar DETACH PARTITION public.mar_b",
			want: []string{"a public.mar_b detached 1 " + midJanuary}, attach: "ALTER TABLE public.mar ATTACH PARTITION public.mar_b FOR VALUES FROM ("},
		"a partition with its parts": {before: subPartition, sql: "ALTER TABLE public.events DETACH PARTITION public.mar", want: []string{"a public.mar detached 2 " + midJanuary},
			attach: "ALTER TABLE public.events ATTACH PARTITION public.mar FOR VALUES FROM ("},
		"a partition is dropped with its parts": {before: subPartition, sql: "DROP TABLE public.mar", want: []string{"a public.mar dropped 2 " + midJanuary}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagging(t, cmp.Or(c.process, monthsProcess))
			exec(t, pool, c.before)
			c.at = cmp.Or(c.at, midJanuary)
			place(t, pool, "a", c.at, cmp.Or(c.state, "running"))
			requireNotedOnce(t, pool, config, c.at, c.sql, c.want...)
			require.NoError(t, drain(t, config), "the cursor passes the place")
			findings := about(t, config)
			require.Len(t, findings, len(c.want))
			for _, f := range findings {
				require.Equal(t, daemon.Warn, f.Severity)
				require.Contains(t, f.Fix, "ordered-dispatcher seek a --to-position "+c.at)
				require.Contains(t, f.Fix, c.attach)
			}
		})
	}
}

// TestGuard_LeavesAFailedConnectionToTheProcess: it is no matter of the partitions, and the process logs it.
func TestGuard_LeavesAFailedConnectionToTheProcess(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	address := config.Database
	config.Database = "postgres://u@" + tcptest.Closed(t) + "/d"
	require.Empty(t, daemon.NewGuard(t, config).Logged(t))
	config.Database = address
	exec(t, pool, "ALTER TABLE "+schema+".cursor RENAME TO elsewhere")
	require.Contains(t, daemon.NewGuard(t, config).Logged(t), "the partitions cannot be inspected")
}

// subPartition adds March in two parts, with a record each.
const subPartition = `CREATE TABLE public.mar PARTITION OF public.events FOR VALUES FROM ('2026-03-01') TO ('2026-04-01') PARTITION BY RANGE (id);
	CREATE TABLE public.mar_a PARTITION OF public.mar FOR VALUES FROM (0) TO (200);
	CREATE TABLE public.mar_b PARTITION OF public.mar FOR VALUES FROM (200) TO (300);
	INSERT INTO public.events (id, created_at) VALUES (101, '2026-03-10'), (201, '2026-03-20');`

// inherited is process a on a table from which another inherits. That one holds the only record, which is undelivered.
func inherited(t testing.TB) (*pgxpool.Pool, daemon.Config, daemon.Guard) {
	t.Helper()
	pool, config := fixture(t, stdoutProcess)
	exec(t, pool, `CREATE TABLE public.special () INHERITS (public.bookings); CREATE INDEX ON public.special (created_at, id); INSERT INTO public.special (id) VALUES (7)`)
	require.NoError(t, drain(t, config))
	place(t, pool, "a", "", "paused")
	return pool, config, guarding(t, config)
}

func TestGuard_NotesATableThatInheritsNoMore(t *testing.T) {
	t.Parallel()
	pool, config, g := inherited(t)
	exec(t, pool, "ALTER TABLE public.special NO INHERIT public.bookings")
	g.Look(t, "a")
	require.Equal(t, []string{"a public.special detached 1 "}, noted(t, pool))
	findings := about(t, config)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0].Fix, "ordered-dispatcher seek a --to-start -c FILE --reason …; then ALTER TABLE public.special INHERIT public.bookings. That sends")
}

// TestGuard_NotesATableThatGoesDuringALook: the table is listed, and is gone when its records are asked for.
func TestGuard_NotesATableThatGoesDuringALook(t *testing.T) {
	t.Parallel()
	pool, _, g := inherited(t)
	duringALook(t, pool, g, "LOCK TABLE public.bookings; ALTER TABLE public.special NO INHERIT public.bookings")
	require.Equal(t, []string{"a public.special detached 1 "}, noted(t, pool))
}

// duringALook runs SQL that locks the table, and commits it when a look has listed the table and waits to ask it.
func duringALook(t *testing.T, pool *pgxpool.Pool, g daemon.Guard, sql string) {
	t.Helper()
	other := session(t, "BEGIN; "+sql)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		g.Look(t, "a")
	}()
	untilTrue(t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '/* source.first */%')`)
	exec(t, other, "COMMIT")
	waittest.Receive(t, looked, "the look ends")
}

func TestGuard_NotesADetachThatDidNotEnd(t *testing.T) {
	t.Parallel()
	pool, config := lagging(t, monthsProcess)
	exec(t, pool, "DROP TABLE public.rest")
	g := guarding(t, config)
	reader := session(t, "BEGIN; SELECT FROM public.events")
	detaching, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer detaching.Release()
	exec(t, detaching, "SET lock_timeout = '200ms'")
	_, err = detaching.Exec(t.Context(), "ALTER TABLE public.events DETACH PARTITION public.jan CONCURRENTLY")
	require.ErrorContains(t, err, "55P03")
	exec(t, reader, "COMMIT")
	g.Look(t, "a")
	want := []string{"a public.jan detached 1 " + midJanuary}
	require.Equal(t, want, noted(t, pool), "its rows are not read any more")
	exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.jan FINALIZE")
	g.Look(t, "a")
	require.Equal(t, want, noted(t, pool))
}

func TestGuard_NotesNoPartitionThatNoProcessNeeds(t *testing.T) {
	t.Parallel()
	const detach = "ALTER TABLE public.events DETACH PARTITION public.jan"
	for name, c := range map[string]struct {
		process string
		happens func(t *testing.T, pool *pgxpool.Pool, config daemon.Config, g daemon.Guard)
	}{
		"caught up": {monthsProcess, func(t *testing.T, pool *pgxpool.Pool, config daemon.Config, g daemon.Guard) {
			require.NoError(t, drain(t, config))
			g.Look(t, "a")
			exec(t, pool, detach+"; DROP TABLE public.feb")
		}},
		"past it": {monthsProcess, func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config, g daemon.Guard) {
			place(t, pool, "a", january, "paused")
			g.Look(t, "a")
			exec(t, pool, detach)
		}},
		"what where leaves out": {"  a: {source: {table: public.events, where: region = 'c'}, sink: {stdout: {}}, poll: 20ms}\n", func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config, _ daemon.Guard) {
			exec(t, pool, detach)
		}},
		"attached again": {monthsProcess, func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config, _ daemon.Guard) {
			exec(t, pool, detach+"; ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')")
		}},
		"renamed": {monthsProcess, func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config, _ daemon.Guard) {
			exec(t, pool, "ALTER TABLE public.jan RENAME TO january")
		}},
		"sought past by an operator": {monthsProcess, func(t *testing.T, pool *pgxpool.Pool, config daemon.Config, _ daemon.Guard) {
			seek(t, config, january)
			exec(t, pool, detach)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagging(t, c.process)
			g := guarding(t, config)
			c.happens(t, pool, config, g)
			g.Look(t, "a")
			require.Empty(t, noted(t, pool))
		})
	}
}

func TestDoctor_NamesAPartitionThatIsGoneUntilItIsSettled(t *testing.T) {
	t.Parallel()
	const attach = "ALTER TABLE public.events ATTACH PARTITION public.jan FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')"
	for name, c := range map[string]struct {
		settle func(t *testing.T, pool *pgxpool.Pool, config daemon.Config)
		left   daemon.Severity
	}{
		"nothing was done": {func(*testing.T, *pgxpool.Pool, daemon.Config) {}, daemon.Warn},
		"the cursor passes it": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			require.NoError(t, drain(t, config))
		}, daemon.Warn},
		"an operator seeks": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			require.NoError(t, drain(t, config))
			seek(t, config, january)
		}, ""},
		"attached again before the cursor": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) {
			exec(t, pool, attach)
		}, ""},
		"attached again after the cursor": {func(t *testing.T, pool *pgxpool.Pool, config daemon.Config) {
			require.NoError(t, drain(t, config))
			exec(t, pool, attach)
		}, daemon.Note},
		"long ago": {func(t *testing.T, pool *pgxpool.Pool, _ daemon.Config) {
			exec(t, pool, "UPDATE od.cursor_event SET at = at - interval '31 days' WHERE action = 'partition_gone'")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := lagging(t, monthsProcess)
			g := guarding(t, config)
			exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.jan")
			g.Look(t, "a")
			c.settle(t, pool, config)
			requireLeft(t, config, c.left, "public.jan was detached")
		})
	}
}

// TestRun_APartitionThatIsDetachedWhileAWorkerLagsIsNamed: the cursor goes on through the other partitions.
func TestRun_APartitionThatIsDetachedWhileAWorkerLagsIsNamed(t *testing.T) {
	t.Parallel()
	pool := months(t)
	var open atomic.Bool
	process := webhookTo(t, func(w http.ResponseWriter, _ *http.Request) {
		if !open.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	config := configure(t, pgtest.URL(t), strings.Replace(process, "public.bookings", "public.events", 1))
	m := monitor(t, config)
	require.Eventually(t, func() bool { return strings.Contains(m.log.String(), "partitions hold records that are not delivered") }, patience, time.Millisecond)
	exec(t, pool, "ALTER TABLE public.events DETACH PARTITION public.jan")
	require.Eventually(t, func() bool { return len(noted(t, pool)) == 1 }, patience, time.Millisecond)
	open.Store(true)
	m.until("lag_records", is(0))
	require.Equal(t, []string{"a public.jan detached 2 "}, noted(t, pool))
	findings := about(t, config)
	require.Len(t, findings, 1)
	require.Equal(t, daemon.Warn, findings[0].Severity)
	var warned bool
	for line := range strings.Lines(m.log.String()) {
		var entry struct{ Level, Msg, Process, Table string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Table == "public.jan" {
			warned = warned || fmt.Sprint(entry.Level, entry.Process) == "WARNa"
		}
	}
	require.True(t, warned, m.log.String())
}
