package main_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The configuration of docs/sinks/sql.md, for the servers of this test. The worker
// is killed when its records are committed in the target and its cursor has not
// advanced: the next one must not apply them again.
func TestRun_SQLToAnotherServerKilledBetweenTheTwoCommits(t *testing.T) {
	t.Parallel()
	const records, kills = 100, 5
	address, pool := database(t, records)
	server := pgtest.Server(t, nil)
	target := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	text := strings.Replace(fenced(t, "sql.md", "yaml"), "table: public.payments", "table: public.bookings", 1)
	through, link := pgtest.Proxy(t, server.URL())
	text = regexp.MustCompile(`postgres://\S+`).ReplaceAllLiteralString(text, through)
	execute(t, target, "CREATE SCHEMA ledger; CREATE TABLE ledger.payment (n bigserial, id bigint)")
	c := file(t, text)
	code, out, _ := do(t, address, "doctor", "-c", c)
	require.Equal(t, 1, code)
	execute(t, target, remoteTables(out))

	for range kills {
		committed := make(chan struct{})
		var once atomic.Bool
		link.OnData(func(fromServer bool, data []byte) {
			if fromServer && bytes.Contains(data, []byte("COMMIT\x00Z")) && once.CompareAndSwap(false, true) {
				link.Stall() // the worker does not hear of it
				close(committed)
			}
		})
		p := start(t, address, "run", "-c", c)
		select {
		case <-committed:
		case <-time.After(patience):
			t.Fatal("the worker commits nothing")
		}
		p.signal(syscall.SIGKILL)
		p.wait()
		ahead, behind := pgtest.Value[int](t, target, "SELECT sequence FROM public.ordered_dispatcher_applied"), sequence(t, pool, "payments")
		require.Greater(t, ahead, behind, "the target has committed, the cursor has not advanced")
		link.Cut()
		link.Resume()
	}
	code, _, stderr := do(t, address, "run", "--drain", "-c", c)
	require.Zero(t, code, stderr)
	var want []string
	for id := range records {
		want = append(want, fmt.Sprint(id+1))
	}
	require.Equal(t, want, pgtest.Value[[]string](t, target, "SELECT array_agg(id::text ORDER BY n) FROM ledger.payment"))
}

// remoteTables is the SQL of doctor's fix.
func remoteTables(out string) string {
	_, sql, _ := strings.Cut(out, "fix: -- in")
	sql = "-- in" + sql
	var lines []string
	for line := range strings.Lines(sql) {
		if len(lines) > 0 && !strings.HasPrefix(line, "          ") {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
