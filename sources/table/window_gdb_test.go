//go:build measure

package table

import (
	"bufio"
	"fmt"
	"io"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// TestMeasure_BackendStoppedInTheWindowOfNow holds a backend, by a debugger, where
// it has stamped its transaction: before it shows that it is at work, and before it
// shows that its transaction is open. A reader waits for it in both. It runs with
// TestMeasure_WindowOfNow, needs gdb, and the server on this machine.
func TestMeasure_BackendStoppedInTheWindowOfNow(t *testing.T) {
	for _, window := range []string{"pgstat_report_activity", "VirtualXactLockTableInsert"} {
		t.Run(window, func(t *testing.T) {
			pool := database(t, nowTable)
			start := bookings(t, pool, Config{}).mustEnd(t)
			s := bookings(t, readerPool(t, pool, "stats"), Config{Latency: 5 * time.Millisecond})
			read(t, s, start, 10)
			w := newSession(t, pool)
			g := debug(t, w.pid)
			g.do("break "+window, "Breakpoint 1")
			g.do("continue", "Continuing.")
			inserted := make(chan error, 1)
			go func() {
				_, err := w.Exec(t.Context(), `INSERT INTO app.bookings (note) VALUES ('stopped')`)
				inserted <- err
			}()
			g.await("Breakpoint 1,")
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('after')`)
			holdsBack(t, s, start)
			g.do("delete", "(gdb)")
			g.do("detach", "detached]")
			require.NoError(t, waittest.Receive(t, inserted, "the INSERT ends"))
			require.Equal(t, []string{"stopped", "after"}, notes(t, readAll(t, s, start, 10)))
		})
	}
}

// debugger is gdb at a backend, told line by line what to do.
type debugger struct {
	t   testing.TB
	in  io.Writer
	out chan string
}

func debug(t testing.TB, pid uint32) *debugger {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), pgtest.Require(t, "gdb"), "-p", fmt.Sprint(pid), "-ex", "handle SIGUSR1 nostop noprint pass", "-ex", "set confirm off")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	g := &debugger{t: t, in: in, out: make(chan string, 1000)}
	go func() {
		defer close(g.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			g.out <- lines.Text()
		}
	}()
	return g
}

// do sends a command and waits for what it says.
func (g *debugger) do(command, says string) {
	g.t.Helper()
	_, err := fmt.Fprintln(g.in, command)
	require.NoError(g.t, err)
	if says != "(gdb)" {
		g.await(says)
	}
}

func (g *debugger) await(says string) {
	g.t.Helper()
	var heard []string
	for {
		select {
		case line, ok := <-g.out:
			heard = append(heard, line)
			if !ok {
				require.FailNow(g.t, "gdb did not say "+says, "%v", heard)
			}
			if strings.Contains(line, says) {
				return
			}
		case <-time.After(patience):
			require.FailNow(g.t, "gdb did not say "+says, "%v", heard)
		}
	}
}
