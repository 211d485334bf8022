// Package balances_test feeds a read model from pgbench's history and lets
// pgbench's own sums be the judge.
package balances_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// produce is how long pgbench runs, and kills how often the active worker dies
// meanwhile.
const (
	produce = 15 * time.Second
	kills   = 5
)

func TestBalances_EqualPgbenchsOwnHoweverOftenAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	pgbench := pgtest.Require(t, "pgbench")
	address := pgtest.URL(t)
	pool := pgtest.Database(t)
	program := build(t)

	run(t, exec.Command(pgbench, "--initialize", "--scale=1", "--quiet", address))
	schema, err := os.ReadFile("schema.sql")
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), string(schema))
	require.NoError(t, err)
	run(t, dispatcher(program, address, "migrate", "up"))

	workers := crew{t: t, start: func() *exec.Cmd { return dispatcher(program, address, "run", "-c", "dispatcher.yaml") }}
	workers.hire()
	workers.hire()
	load := exec.Command(pgbench, "--client=8", "--jobs=2", "--time="+strconv.Itoa(int(produce.Seconds())), "--no-vacuum", address)
	done := make(chan string, 1)
	go func() {
		output, _ := load.CombinedOutput()
		done <- string(output)
	}()

	ticker := time.NewTicker(produce / (kills + 1))
	defer ticker.Stop()
	for range kills {
		<-ticker.C
		workers.killActive(pool)
		workers.hire()
	}
	t.Log(<-done)
	require.True(t, load.ProcessState.Success())
	run(t, dispatcher(program, address, "run", "-c", "dispatcher.yaml", "--drain"))

	var history, delivered, epoch int64
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM public.pgbench_history`).Scan(&history))
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT sequence, epoch FROM public.cursor`).Scan(&delivered, &epoch))
	t.Logf("%d records, %d workers killed, epoch %d", history, kills, epoch)
	require.Positive(t, history)
	require.Equal(t, history, delivered)
	require.GreaterOrEqual(t, epoch, int64(kills), "the killed workers were at work")
	for ours, theirs := range map[string]string{"account": "accounts", "teller": "tellers", "branch": "branches"} {
		require.Zero(t, different(t, pool, ours, theirs), "%s whose balance differs from pgbench's", theirs)
	}
}

// different counts the rows whose balance is not pgbench's own.
func different(t *testing.T, pool *pgxpool.Pool, ours, theirs string) (n int) {
	t.Helper()
	initial := theirs[:1] // aid and abalance, tid and tbalance, bid and bbalance
	sql := fmt.Sprintf(`SELECT count(*)
		FROM public.pgbench_%s theirs
		FULL JOIN balances.%s ours ON ours.id = theirs.%sid
		WHERE coalesce(ours.balance, 0) IS DISTINCT FROM theirs.%sbalance`, theirs, ours, initial, initial)
	require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ordered-dispatcher")
	run(t, exec.Command("go", "build", "-o", program, "../../cmd/ordered-dispatcher"))
	return program
}

func dispatcher(program, address string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+address)
	return cmd
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", cmd, output)
}

// crew is the running workers by process id.
type crew struct {
	t     *testing.T
	start func() *exec.Cmd
	all   map[int]*exec.Cmd
}

func (c *crew) hire() {
	c.t.Helper()
	cmd := c.start()
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(c.t, cmd.Start())
	if c.all == nil {
		c.all = map[int]*exec.Cmd{}
	}
	c.all[cmd.Process.Pid] = cmd
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("worker %d: %s", cmd.Process.Pid, log.String())
		}
	})
}

// killActive kills the worker that holds the cursor, which is named
// host:pid:random, once it is one of ours that lives.
func (c *crew) killActive(pool *pgxpool.Pool) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var holder string
		if err := pool.QueryRow(context.Background(), `SELECT holder FROM public.cursor`).Scan(&holder); err != nil {
			return false
		}
		parts := strings.Split(holder, ":")
		if len(parts) < 2 {
			return false
		}
		pid, _ := strconv.Atoi(parts[len(parts)-2])
		cmd, ours := c.all[pid]
		if !ours {
			return false
		}
		delete(c.all, pid)
		return cmd.Process.Signal(syscall.SIGKILL) == nil
	}, 30*time.Second, 5*time.Millisecond, "no worker took over")
}
