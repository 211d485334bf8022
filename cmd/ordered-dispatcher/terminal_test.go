package main_test

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// terminal is a run of the program on a terminal of its own.
type terminal struct {
	t           testing.TB
	person, tty *os.File
	seen        *display
	cmd         *exec.Cmd
	before      *term.State
}

// onTerminal runs the program on a terminal of 80 columns and 24 lines.
func onTerminal(t testing.TB, database string, args ...string) *terminal {
	t.Helper()
	person, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(person, &pty.Winsize{Rows: 24, Cols: 80}))
	before, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	p := &terminal{t: t, person: person, tty: tty, seen: newDisplay(), cmd: exec.Command(binary, args...), before: before}
	p.cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "DATABASE_URL=" + database}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.cmd.Start())
	go pass(p.seen.Write, person.Read)
	go pass(person.Write, p.seen.Read) // the answers of the terminal
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = tty.Close()
		_ = person.Close()
	})
	return p
}

func pass(write, read func([]byte) (int, error)) {
	b := make([]byte, 4096)
	for {
		n, err := read(b)
		if n > 0 {
			_, _ = write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// until waits for a text on the screen.
func (p *terminal) until(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.seen.String(), text) }, patience, tick, "%q is not on the screen:\n%s", text, p.seen)
}

func (p *terminal) press(keys string) {
	p.t.Helper()
	_, err := p.person.WriteString(keys)
	require.NoError(p.t, err)
}

func (p *terminal) resize(columns, lines int) {
	p.t.Helper()
	p.seen.Resize(columns, lines)
	require.NoError(p.t, pty.Setsize(p.person, &pty.Winsize{Rows: uint16(lines), Cols: uint16(columns)}))
}

// wait returns the exit code, and requires that the terminal is as it was before.
func (p *terminal) wait() int {
	p.t.Helper()
	done := make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		p.t.Fatalf("%v did not end:\n%s", p.cmd.Args, p.seen)
	}
	after, err := term.GetState(int(p.tty.Fd()))
	require.NoError(p.t, err)
	require.Equal(p.t, p.before, after)
	return p.cmd.ProcessState.ExitCode()
}

func TestStatusWatch_OnATerminal(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	receiver := newPicky(t, "3")
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}", "b": "webhook: {url: '" + receiver.URL + "/b'}"})
	code, _, _ := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	network, err := link.Listen(net.JoinHostPort(parsed.Hostname(), parsed.Port()))
	require.NoError(t, err)
	t.Cleanup(network.Close)
	parsed.Host = network.Addr()

	p := onTerminal(t, parsed.String(), "status", "--watch", "-c", config)
	p.until("> a")
	p.until("halted at record 3, which the receiver refuses for good")
	p.press("\r")
	p.until("failing       record 3")
	require.NotContains(t, p.seen.String(), `"customer"`)
	p.press("v")
	p.until(`"id":3`)
	p.resize(120, 40)
	p.until("esc back   ↑↓ other process")
	p.press("\x1b")
	p.until("LAST-RECORD")

	back := network.Away()
	p.until("no answer from the database since")
	p.until("> a")
	back()
	require.Eventually(t, func() bool { return !strings.Contains(p.seen.String(), "no answer") }, patience, tick)

	p.press("r")
	p.until("dry run: record 3 of a would be tried again at once")
	p.press("the number is corrected\r")
	p.until("any key: back")
	require.Equal(t, "retry", text(t, pool, "SELECT action FROM public.cursor_event WHERE process_name = 'a' AND reason = 'the number is corrected'"))
	p.press("x")
	p.until("enter open")
	p.press("q")
	require.Zero(t, p.wait())
	require.Eventually(t, func() bool { return !p.seen.IsAltScreen() }, patience, tick, "what it wrote last arrives after its end")
}

func TestStatusWatch_ATerminalThatCannotMoveGetsLines(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, pgtest.URL(t), "status", "--watch", "--json")
	p.until("ordered-dispatcher migrate up")
	p.press("\x03")
	require.Zero(t, p.wait())
}

func TestRunDrain_ShowsItsProgressOnATerminal(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 50)
	receiver := slow(t)
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"})
	p := onTerminal(t, address, "run", "--drain", "-c", config)
	<-receiver.arrived
	p.until(" of 50 records, ")
	close(receiver.answer)
	p.until("every process has caught up, after ")
	require.Zero(t, p.wait())
	require.NotContains(t, p.seen.String(), " of 50 records", "the bar is gone")
}

// display is what a terminal shows. A test may look while the program writes.
type display struct {
	mu sync.Mutex
	e  *vt.Emulator
}

func newDisplay() *display { return &display{e: vt.NewEmulator(80, 24)} }

func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.e.Write(p)
}

// Read returns the answers of the terminal.
func (d *display) Read(p []byte) (int, error) { return d.e.Read(p) }

func (d *display) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.e.String()
}

func (d *display) IsAltScreen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.e.IsAltScreen()
}

func (d *display) Resize(columns, lines int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.e.Resize(columns, lines)
}
