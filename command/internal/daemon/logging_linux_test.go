package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// terminal is a pseudo-terminal: what is written to one end is read at the other.
func terminal(t testing.TB) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ours.Close() })
	var unlock, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, ours.Fd(), request, uintptr(unsafe.Pointer(argument)))
		require.Zero(t, errno)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

func TestNewLogger_IsForPeopleOnATerminalAndJSONElsewhere(t *testing.T) {
	t.Parallel()
	speak := func(log *slog.Logger) {
		log.Info("not asked for")
		log.Warn("delivery failed", "process", "a", "delay", 1500*time.Millisecond)
	}
	ours, theirs := terminal(t)
	speak(daemon.NewLogger(theirs, slog.LevelWarn))
	line, err := bufio.NewReader(ours).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "delivery failed")
	require.Contains(t, line, "\x1b[", "in colour")
	require.NotContains(t, line, "{")

	var text strings.Builder
	speak(daemon.NewLogger(&text, slog.LevelWarn))
	var document map[string]any
	require.NoError(t, json.Unmarshal([]byte(text.String()), &document))
	delete(document, "time")
	require.Equal(t, map[string]any{"level": "WARN", "msg": "delivery failed", "process": "a", "delay": "1.5s"}, document)
}

// hostileTexts are one each of what a terminal or tint takes for an order. The third has no control character.
var hostileTexts = []string{"a\x1b[2J", "a\r\u009b31m\x7fb", `a\x1b[8m b`, "a\u202eb\u2066", "two\nlines\u2028", "plain", "a\x9b\xffb"}

type texts struct{ Text string }

// speakHostile logs a text in every way in which one can stand in a line.
func speakHostile(log *slog.Logger, text string) {
	log.With("with", text).WithGroup("group").Error(text, "string", text, "err", errors.New(text), "names", []string{text}, "position", cursor.Position(text), "any", texts{text})
}

func TestNewLogger_NoTextOfOthersMovesATerminal(t *testing.T) {
	t.Parallel()
	ours, theirs := terminal(t)
	log, lines := daemon.NewLogger(theirs, slog.LevelInfo), bufio.NewReader(ours)
	colour := regexp.MustCompile(`\x1b\[(0|2|22|9[0-9])(;2)?m`)
	for _, text := range hostileTexts {
		speakHostile(log, text)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		for _, r := range colour.ReplaceAllString(strings.TrimSuffix(line, "\r\n"), "") {
			require.False(t, visible.Hidden(r), "%q: %q", text, line)
		}
	}
	log.Info("the end")
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "the end", "each was one line")
}

func TestNewLogger_JSONIsOneObjectALine(t *testing.T) {
	t.Parallel()
	for _, text := range hostileTexts {
		var b strings.Builder
		speakHostile(daemon.NewLogger(&b, slog.LevelInfo), text)
		for _, r := range strings.TrimSuffix(b.String(), "\n") {
			require.False(t, visible.Hidden(r), "%q: %q", text, b.String())
		}
		var document struct{ Msg, With string }
		require.NoError(t, json.Unmarshal([]byte(b.String()), &document))
		if utf8.ValidString(text) {
			require.Equal(t, text, document.Msg)
		}
	}
}

// panicking is an output that panics with what a record may hold.
type panicking struct{ text string }

func (p panicking) Write([]byte) (int, error) { panic(p.text) }

func TestRun_ASinkThatPanicsLeavesTheLogJSON(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	var log buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, daemon.RunConfig{Config: configure(t, pgtest.URL(t), stdoutProcess), Grace: time.Second,
			Stdout: panicking{strings.Join(hostileTexts, "\n{\"level\":\"FORGED\"}\n")}, Logger: daemon.NewLogger(&log, slog.LevelInfo)})
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "panicked") }, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, waittest.Receive(t, ended, "the run ends"))
	for line := range strings.Lines(log.String()) {
		var document map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &document), line)
		require.NotEqual(t, "FORGED", document["level"])
	}
}

func TestDrain_TheStdoutSinkMovesNoTerminal(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "INSERT INTO public.bookings (customer) VALUES ($1)", "a\u009b31m\u202e\x7f")
	ours, theirs := terminal(t)
	require.NoError(t, drainTo(t, daemon.RunConfig{Config: configure(t, pgtest.URL(t), stdoutProcess), Stdout: theirs}))
	line, err := bufio.NewReader(ours).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `a\u009b31m\u202e\u007f`)
}
