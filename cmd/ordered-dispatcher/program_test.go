package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait: a test that needs it fails.
const patience = 2 * time.Minute

// tick is how often an event that must come is looked for.
const tick = 10 * time.Millisecond

var binary string // built by TestMain

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ordered-dispatcher-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "ordered-dispatcher")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// program is a run of the built binary.
type program struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdout *output
	stderr *output
	done   chan struct{}
	code   int
}

// start runs the program with DATABASE_URL; "" leaves it unset.
func start(t testing.TB, database string, args ...string) *program {
	t.Helper()
	return startWith(t, database, "", args...)
}

func startWith(t testing.TB, database, stdin string, args ...string) *program {
	t.Helper()
	return startCommand(t, database, stdin, exec.Command(binary, args...))
}

// startCommand runs a command that becomes the program.
func startCommand(t testing.TB, database, stdin string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, stdout: newOutput(), stderr: newOutput(), done: make(chan struct{})}
	p.cmd.Stdin = strings.NewReader(stdin)
	p.cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "COLUMNS=9999"}, cmd.Env...) // lines are not folded
	if database != "" {
		p.cmd.Env = append(p.cmd.Env, "DATABASE_URL="+database)
	}
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.await(stdout, stderr)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // if the test ended early
		<-p.done
		if t.Failed() {
			t.Logf("%v\nstdout:\n%s\nstderr:\n%s", p.cmd.Args[1:], p.stdout.tail(), p.stderr.tail())
		}
	})
	return p
}

func (p *program) await(stdout, stderr io.Reader) {
	var pipes sync.WaitGroup
	pipes.Go(func() { p.stdout.read(stdout) })
	pipes.Go(func() { p.stderr.read(stderr) })
	pipes.Wait()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		p.code = exit.ExitCode() // -1: by a signal
	default:
		p.code = -2
	}
	close(p.done)
}

// wait returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(patience):
		p.t.Fatalf("%v did not end", p.cmd.Args[1:])
		return 0
	}
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// stop ends it gracefully.
func (p *program) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	require.Zero(p.t, p.wait())
}

// output is what a program wrote, line by line.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	lines   []string
	closed  bool
}

func newOutput() *output {
	o := &output{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

func (o *output) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		o.mu.Lock()
		o.lines = append(o.lines, lines.Text())
		o.changed.Broadcast()
		o.mu.Unlock()
	}
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
}

// until waits for n lines that contain a text.
func (o *output) until(t testing.TB, n int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.changed.Broadcast()
	})()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		count := 0
		for _, line := range o.lines {
			if strings.Contains(line, text) {
				count++
			}
		}
		if count >= n {
			return
		}
		if o.closed || ctx.Err() != nil {
			require.Failf(t, "missing output", "%d of %d lines have %q in:\n%s", count, n, text, strings.Join(o.lines, "\n"))
		}
		o.changed.Wait()
	}
}

// tail is enough of it for the log of a test that failed.
func (o *output) tail() string {
	lines := strings.Split(o.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b bytes.Buffer
	for _, line := range o.lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// do runs the program to its end.
func do(t testing.TB, database string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, database, args...)
	code = p.wait()
	return code, p.stdout.String(), p.stderr.String()
}

// file writes a configuration.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dispatcher.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ended is with what error a command ended: its own text, also where that is the last line of a log of JSON.
func ended(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	var last struct{ Msg, Err string }
	if json.Unmarshal([]byte(lines[len(lines)-1]), &last) == nil && last.Msg == "ended" {
		return last.Err
	}
	return stderr
}
