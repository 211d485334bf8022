package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
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
