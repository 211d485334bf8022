//go:build measure

package table

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// TestMeasure_WindowOfNow says which latency a table with now() needs, on a
// machine that has far more to do than it can: a backend stamps its transaction
// some instructions before anyone can see that it is open, and may be descheduled
// in between. Many samples are taken, each with a snapshot in the place of the
// rows; in the end the rows show what each sample would have lost without any
// latency: those below its bound that its snapshot does not see. It is not run by
// default:
//
//	TABLE_MEASURE=60s go test -tags measure -run Measure_WindowOfNow -v -timeout 1h ./sources/table
//
// A line says how many samples would have lost a row, and by how much at most:
// the latency that would have kept it.
func TestMeasure_WindowOfNow(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv("TABLE_MEASURE"))
	require.NoError(t, err, "TABLE_MEASURE says how long to measure, such as 60s")
	for _, hogs := range []int{0, 8, 32} {
		t.Run(fmt.Sprintf("%d hogs", hogs), func(t *testing.T) {
			pool := database(t, `CREATE SCHEMA app;
				CREATE TABLE app.bookings (
					id bigint GENERATED ALWAYS AS IDENTITY,
					created_at timestamptz NOT NULL DEFAULT now(),
					tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint
				);
				CREATE UNIQUE INDEX ON app.bookings (created_at, id);
				CREATE INDEX ON app.bookings (tx);
				CREATE TABLE app.samples (role text, bound bigint, snapshot text);`)
			stop := hog(t, pool, hogs)
			defer stop()
			deadline := time.Now().Add(duration)
			var group sync.WaitGroup
			for range measuredProducers {
				conn := newSession(t, pool)
				conn.do(`SET synchronous_commit = off`)
				yieldTo(t, conn.pid)
				group.Go(func() {
					for time.Now().Before(deadline) && t.Context().Err() == nil {
						if _, err := conn.Exec(t.Context(), `INSERT INTO app.bookings DEFAULT VALUES`); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			var mu sync.Mutex
			var samples [][]any
			for _, role := range []string{"stats", "same", "stats", "same"} {
				st := newStepper(t, bookings(t, pool, Config{}), nil)
				st.session = newSession(t, readerPool(t, pool, role))
				group.Go(func() {
					for time.Now().Before(deadline) {
						bound, snapshot := st.sample()
						mu.Lock()
						samples = append(samples, []any{role, bound, snapshot})
						mu.Unlock()
					}
				})
			}
			group.Wait()
			stop()
			_, err := pool.CopyFrom(t.Context(), pgx.Identifier{"app", "samples"}, []string{"role", "bound", "snapshot"}, pgx.CopyFromRows(samples))
			require.NoError(t, err)
			report(t, pool)
		})
	}
}

const measuredProducers = 16

// yieldTo lowers the priority of a backend, where we may: the more often samples
// are taken, the more they see.
func yieldTo(t *testing.T, pid uint32) {
	t.Helper()
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, int(pid), 10); err != nil {
		t.Logf("samples have no priority: %v", err)
	}
}

// hog keeps the machine busy: in another database, since in this one it would
// hold the fence.
func hog(t *testing.T, pool *pgxpool.Pool, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	other := pool.Config().ConnConfig.Copy()
	other.Database = "postgres"
	var group sync.WaitGroup
	for range n {
		conn, err := pgx.ConnectConfig(ctx, other)
		require.NoError(t, err)
		yieldTo(t, conn.PgConn().PID())
		group.Go(func() {
			defer func() { _ = conn.Close(context.Background()) }()
			for ctx.Err() == nil {
				_, _ = conn.Exec(ctx, `SELECT count(*) FROM generate_series(1, 1000000)`)
			}
		})
	}
	return func() { cancel(); group.Wait() }
}

// sample is a read with a snapshot in the place of the rows.
func (st *stepper) sample() (bound int64, snapshot string) {
	statements := st.l.statements(st.config, `SELECT pg_current_snapshot()`, nil)
	statements[len(statements)-2].Formats = nil
	r := &reading{layout: st.l}
	found := map[string][][][]byte{}
	results := prepared.Exec(st.t.Context(), st.Conn, statements...)
	for _, s := range statements {
		rows, err := nextRows(results)
		require.NoError(st.t, err)
		switch {
		case part(s) == "mark":
			require.NoError(st.t, r.takeMark(rows[0]))
		case part(s) != "begin":
			found[part(s)] = rows
		case len(rows) == 1 && len(rows[0]) == 1:
			snapshot = string(rows[0][0])
		}
	}
	require.NoError(st.t, results.Close())
	var err error
	r.sample.writers, err = st.l.writers(inTurn(st.l, found))
	require.NoError(st.t, err)
	return st.fence.next(r.sample), snapshot
}

func report(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		WITH missed AS (
			SELECT s.role, s.ctid AS sample, s.bound - (extract(epoch FROM b.created_at) * 1000000)::bigint AS by
			FROM app.samples s
			JOIN app.bookings b ON b.tx BETWEEN pg_snapshot_xmin(s.snapshot::pg_snapshot)::text::bigint AND pg_snapshot_xmin(s.snapshot::pg_snapshot)::text::bigint + 2000
			WHERE (extract(epoch FROM b.created_at) * 1000000)::bigint < s.bound
				AND NOT pg_visible_in_snapshot(b.tx::text::xid8, s.snapshot::pg_snapshot)
		)
		SELECT role, count(*),
			(SELECT count(DISTINCT sample) FROM missed WHERE missed.role = samples.role),
			(SELECT count(DISTINCT sample) FROM missed WHERE missed.role = samples.role AND by > 5000),
			(SELECT coalesce(max(by), 0) FROM missed WHERE missed.role = samples.role)
		FROM app.samples GROUP BY role ORDER BY role`)
	require.NoError(t, err)
	n := pgtest.Value[int](t, pool, `SELECT count(*) FROM app.bookings`)
	for rows.Next() {
		var role string
		var samples, missed, beyond, most int
		require.NoError(t, rows.Scan(&role, &samples, &missed, &beyond, &most))
		t.Logf("reader of %s role: %d rows, %d samples, %d would lose without latency, %d with 5ms; at most by %v",
			role, n, samples, missed, beyond, time.Duration(most)*time.Microsecond)
	}
	require.NoError(t, rows.Err())
}
