package live

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// terminal returns a real terminal: where a program reads and writes, and what a person sees and types.
func terminal(t testing.TB) (tty, person *os.File, seen *display) {
	t.Helper()
	person, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(person, &pty.Winsize{Rows: 24, Cols: 80}))
	seen = newDisplay()
	go copyTo(seen.Write, person.Read)
	go copyTo(person.Write, seen.Read) // the answers of the terminal
	t.Cleanup(func() {
		_ = tty.Close()
		_ = person.Close()
	})
	return tty, person, seen
}

func copyTo(write, read func([]byte) (int, error)) {
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

// whole runs a view on a terminal, and requires that the terminal is as it was before.
func whole(t testing.TB, ctx context.Context, backend Backend, act func(person *os.File, seen *display)) error {
	t.Helper()
	tty, person, seen := terminal(t)
	before, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, backend, screen.Page{Width: 80}, tty, tty) }()
	act(person, seen)
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		t.Fatal("the view did not end")
	}
	after, stateErr := term.GetState(int(tty.Fd()))
	require.NoError(t, stateErr)
	require.Equal(t, before, after, "the terminal's settings")
	require.Eventually(t, func() bool { return !seen.IsAltScreen() }, time.Minute, 10*time.Millisecond, "the screen from before")
	return err
}

func shows(t testing.TB, seen *display, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return containsText(seen.String(), text) }, time.Minute, 10*time.Millisecond, "%s", text)
}

func TestRun_LeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	look := func(context.Context) ([]daemon.Status, error) { return fleetOf(1), nil }
	require.NoError(t, whole(t, t.Context(), Backend{Look: look}, func(person *os.File, seen *display) {
		shows(t, seen, "booking_sms")
		require.True(t, seen.IsAltScreen())
		_, err := person.WriteString("q")
		require.NoError(t, err)
	}))

	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, whole(t, ctx, Backend{Look: look}, func(_ *os.File, seen *display) {
		shows(t, seen, "booking_sms")
		cancel() // as a signal does
	}))
}

func TestRun_APanicLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	backend := Backend{Look: func(context.Context) ([]daemon.Status, error) { panic("a fault of ours") }}
	err := whole(t, t.Context(), backend, func(*os.File, *display) {})
	require.ErrorContains(t, err, "the view has failed: a fault of ours; please report it")
	require.ErrorContains(t, err, "run_test.go", "where")
	require.ErrorContains(t, err, "`ordered-dispatcher status` works without it")
}

func TestRun_ADecisionWithoutAnAnswerIsNotKnown(t *testing.T) {
	t.Parallel()
	backend := backend(new([]cursor.Decision))
	backend.Look = func(context.Context) ([]daemon.Status, error) { return fleetOf(1), nil }
	rehearse := backend.Decide
	backend.Decide = func(ctx context.Context, v Verb, process string, d cursor.Decision) (daemon.Outcome, error) {
		if d.DryRun {
			return rehearse(ctx, v, process, d)
		}
		<-ctx.Done()
		return daemon.Outcome{}, ctx.Err()
	}
	err := whole(t, t.Context(), backend, func(person *os.File, seen *display) {
		for _, step := range []struct{ shown, keys string }{{"booking_sms", "r"}, {"dry run", "ok\r"}, {"waiting for the worker", "\x03"}} {
			shows(t, seen, step.shown)
			_, err := person.WriteString(step.keys)
			require.NoError(t, err)
		}
	})
	require.EqualError(t, err, "the view ended before the answer to retry booking_sms, so it is not known whether it is done: `ordered-dispatcher history booking_sms` says so")
}

func TestRun_WrongUseEndsIt(t *testing.T) {
	t.Parallel()
	backend := Backend{Look: func(context.Context) ([]daemon.Status, error) {
		return nil, maskedError{&daemon.UsageError{Err: errors.New("x")}, "there is no process"}
	}}
	err := whole(t, t.Context(), backend, func(*os.File, *display) {})
	require.EqualError(t, err, "there is no process")
	require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
}

// containsText looks for words that the terminal may have on several lines.
func containsText(shown, text string) bool { return strings.Contains(shown, text) }

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
