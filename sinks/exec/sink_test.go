package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// bench is the directory of a child: what it keeps there, and what a test puts there.
type bench struct{ dir string }

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	binary, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(binary, filepath.Join(b.dir, "child")))
	return b
}

func (b *bench) sink(t testing.TB, how string, change func(*exec.Config)) *exec.Sink {
	t.Helper()
	return sinktest.Made(t, exec.New, exec.Config{Command: []string{"./child"}, Dir: b.dir, Env: map[string]string{"CHILD": how, "TOKEN": "secret-password"}}, change)
}

// put makes a file that a child looks for.
func (b *bench) put(t testing.TB, name string) (remove func()) {
	t.Helper()
	path := filepath.Join(b.dir, name)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return func() { require.NoError(t, os.Remove(path)) }
}

func (b *bench) read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

// pid is that of a process, as it was written down.
func (b *bench) pid(t testing.TB, who string) int {
	t.Helper()
	pid, err := strconv.Atoi(b.read(t, who+".pid"))
	require.NoError(t, err)
	return pid
}

// received is the journal of the children.
func (b *bench) received(t testing.TB) []sinktest.Message {
	t.Helper()
	all := []sinktest.Message{}
	for line := range strings.Lines(b.read(t, "journal")) {
		var m [2]string
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		all = append(all, sinktest.Message{DedupKey: m[0], Payload: m[1]})
	}
	return all
}

// lose has the child end with its next line, which it has kept.
func (b *bench) lose(t testing.TB) (back func()) { return b.put(t, "lose") }

// away ends the child, and leaves nothing to start.
func (b *bench) away(t testing.TB, s *exec.Sink) (back func()) {
	t.Helper()
	path := filepath.Join(b.dir, "child")
	require.NoError(t, os.Rename(path, path+".away"))
	require.NoError(t, s.Close())
	return func() { require.NoError(t, os.Rename(path+".away", path)) }
}

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for _, window := range []int{1, 20} {
		t.Run(fmt.Sprintf("window %d", window), func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				b := newBench(t)
				s := b.sink(t, "journal", func(c *exec.Config) { c.Window = window; c.MaxBytes = 1 << 20 })
				return sinktest.Subject{
					Sink:     s,
					Received: b.received,
					Refuse:   func(t testing.TB, _ string) func() { return b.put(t, "refuse") },
					Deny: func(t testing.TB) (processor.BatchSink, func()) {
						return b.sink(t, "journal", func(c *exec.Config) { c.Command = []string{"/none/such"} }), func() {}
					},
					Away: func(t testing.TB) func() { return b.away(t, s) },
					Lose: b.lose,
					Another: func(t testing.TB, _ string) processor.BatchSink {
						return b.sink(t, "journal", func(c *exec.Config) { c.Window = window; c.MaxBytes = 1 << 20 })
					},
					Empty:    func(t testing.TB) { require.NoError(t, os.Remove(filepath.Join(b.dir, "journal"))) },
					Silence:  func(t testing.TB) { b.put(t, "silence") },
					TooLarge: 1<<20 + 1,
					Order:    window == 1,
					Compact:  true,
				}
			})
		})
	}
}

func TestDeliverBatch_AChildThatDiesTellsHowAndWhyButNotOfWhat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, "dies", nil)
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 3))
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "its last words: cannot go on with")
	require.NotContains(t, err.Error(), "1e400")
	require.NotContains(t, err.Error(), "secret-password")
	require.Equal(t, "unknown", sinktest.Class(err), err)
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1)) // by another child, for which it is the first
	require.Len(t, b.received(t), 2)
}

func TestDeliverBatch_AChildThatEndsBetweenTwoRecordsIsStartedAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, "ends between", nil)
	for id := range 6 {
		for { // a line may have been on its way to the one that ended
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(id+1, 1))
			if n == 1 {
				break
			}
			require.False(t, processor.IsPermanent(err))
		}
	}
	got := b.received(t)
	require.Len(t, got, 6)
	for i, d := range sinktest.Deliveries(1, 6) {
		require.Equal(t, d.DedupKey(), got[i].DedupKey)
	}
}

// Each of these leaves the outcome of the second record unknown, and the child is not
// spoken to again.
func TestDeliverBatch_AnAnswerThatIsNoneAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct {
		n    int
		text string
	}{
		"swaps":         {1, "out of turn"},
		"twice":         {1, "out of turn"},
		"chats":         {0, "a line that is not an answer"},
		"other attempt": {1, "another attempt, out of turn"},
		"floods":        {0, "a line of more than 65536 bytes"},
	} {
		for _, window := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s, window %d", how, window), func(t *testing.T) {
				t.Parallel()
				s := newBench(t).sink(t, how, func(c *exec.Config) { c.Window = window })
				for range 2 {
					n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 5))
					require.Equal(t, want.n, n)
					require.ErrorContains(t, err, want.text)
					require.Equal(t, "unknown", sinktest.Class(err), err)
				}
			})
		}
	}
}

// The second line comes before the next attempt, which has the number of the first one, as
// after an operator's retry.
func TestDeliverBatch_AChildThatTakesItsWordBackIsStartedAnew(t *testing.T) {
	t.Parallel()
	for _, window := range []int{1, 4} {
		t.Run(fmt.Sprintf("window %d", window), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			said := new(lines)
			s := b.sink(t, "takes back", func(c *exec.Config) { c.Window, c.Logger = window, slog.New(slog.NewTextHandler(said, nil)) })
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Equal(t, 1, n)
			require.ErrorContains(t, err, "no stock")
			require.Eventually(t, func() bool { return exec.Unread(s) > 0 }, time.Minute, time.Millisecond)
			n, err = sinktest.Deliver(t, s, sinktest.Deliveries(2, 3))
			require.Equal(t, 1, n)
			require.ErrorContains(t, err, "no stock", "the new child's second line")
			require.Contains(t, said.String(), "a line without a request")
			got := b.received(t)
			require.GreaterOrEqual(t, len(got), 4)
			require.LessOrEqual(t, len(got), 3+min(window, 2), "the one behind it may have been read, too, if it was on its way")
			for i, record := range []string{"/1/", "/2/", "/2/", "/3/"} {
				require.Contains(t, got[i].DedupKey, record)
			}
		})
	}
}

func TestDeliverBatch_TheChildSaysWhatBecomesOfARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says, text string
		permanent  bool
		after      time.Duration
	}{
		"transient":        {`"error": "no room"`, "its error: no room", false, 0},
		"permanent":        {`"error": "no such customer", "permanent": true, "more": []`, "its error: no such", true, 0},
		"later":            {`"ok": false, "error": "busy", "retry_after": 1.5`, "its error: busy", false, 1500 * time.Millisecond},
		"quotes":           {`"error": "bad n 1e400 in\nsecret-password"`, "its error: bad n […] in [secret]", false, 0},
		"both":             {`"ok": true, "error": "x"`, "not an answer", false, 0},
		"neither":          {`"permanent": true`, "not an answer", false, 0},
		"of another type":  {`"ok": "yes"`, "not an answer", false, 0},
		"no end of a wait": {`"error": "x", "retry_after": 1e300`, "its error: x", false, 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBench(t).sink(t, "says", func(config *exec.Config) { config.Env["SAYS"] = c.says })
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorContains(t, err, c.text)
			require.Equal(t, c.permanent, processor.IsPermanent(err))
			require.Equal(t, c.after, processor.RetryAfterDelay(err))
			require.NotContains(t, err.Error(), "secret-password")
		})
	}
}

// With a window, what stands behind a refused record may be with the child before it.
func TestDeliverBatch_AWindowMayShowAnotherOrderAfterARefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, "journal", func(c *exec.Config) { c.Window = 4 })
	ds := sinktest.Deliveries(1, 4)
	ds[1].Type = "refused"
	restore := b.put(t, "refuse")
	n, err := s.DeliverBatch(t.Context(), ds)
	require.ErrorContains(t, err, "not that type")
	require.Equal(t, 1, n)
	restore()
	sinktest.Delivered(t, s, ds[1:]) // the same child, whose answers were taken
	var order []string
	for _, m := range b.received(t) {
		order = append(order, strings.Split(m.DedupKey, "/")[1])
	}
	require.Equal(t, "1 3 4 2 3 4", strings.Join(order, " "))
}

func TestDeliverBatch_AChildThatHangsIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, "grandchild", func(c *exec.Config) { c.Timeout = 5 * time.Second }) // both start in that on a busy machine
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "no answer within 5s")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	group := b.pid(t, "child")
	t.Cleanup(func() {
		if t.Failed() { // and it is left behind
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	})
	for _, who := range []string{"child", "grandchild"} {
		pid := b.pid(t, who)
		require.Eventually(t, func() bool { return dead(pid) }, time.Minute, 5*time.Millisecond, who)
	}
}

// dead: gone, or a zombie that nobody has reaped.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestDeliverBatch_AChildThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newBench(t).sink(t, "hangs", func(c *exec.Config) { c.Timeout = 5 * time.Second; c.Window = 3 }) // a child starts in that on a busy machine
	ds := sinktest.Deliveries(1, 3)
	ds[2].Payload = fmt.Appendf(nil, "%q", strings.Repeat("x", 1<<20)) // more than a pipe holds
	n, err := s.DeliverBatch(t.Context(), ds)
	require.Equal(t, 1, n)
	require.Error(t, err)
	require.True(t, outcome.IsUnknown(err), "the second record is with the child")
	sinktest.Delivered(t, s, ds[2:]) // is the first of another child
}

func TestDeliverBatch_AWriteThatNobodyReadsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, "journal", func(c *exec.Config) { c.Window = 2 })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.put(t, "silence")
	ds := sinktest.Deliveries(2, 2)
	ds[1].Payload = fmt.Appendf(nil, "%q", strings.Repeat("x", 4<<20))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	n, err := s.DeliverBatch(ctx, ds)
	require.Zero(t, n)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 20*time.Second, "its own time-out is 30 s")
}

func TestNew_TheChildHasTheEnvironmentThatIsNamed(t *testing.T) {
	t.Setenv("DAEMON_SECRET", "secret-password")
	b := newBench(t)
	s := b.sink(t, "environment", func(c *exec.Config) { c.Env = map[string]string{"CHILD": "environment", "NAMED": "a=b c", "LANG": "C"} })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	var got []string
	require.NoError(t, json.Unmarshal([]byte(b.read(t, "environment")), &got))
	require.Contains(t, got, "NAMED=a=b c")
	require.Contains(t, got, "LANG=C")
	require.Contains(t, got, "PATH="+os.Getenv("PATH"))
	for _, variable := range got {
		name, _, _ := strings.Cut(variable, "=")
		require.Contains(t, []string{"CHILD", "NAMED", "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"}, name)
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestDeliverBatch_StandardErrorGoesToTheLogCutAndCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log lines
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	s := b.sink(t, "talks", func(c *exec.Config) { c.Logger, c.Timeout = logger, 5*time.Minute })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
	require.NoError(t, s.Close())
	require.Contains(t, log.String(), `"process":"sms","line":"0 yyy`)
	for line := range strings.Lines(log.String()) {
		require.Less(t, len(line), 1300)
	}
	require.Less(t, strings.Count(log.String(), "\n"), 1000, "of 3,000 lines")

	said := new(lines)
	s = b.sink(t, "dies", func(c *exec.Config) { c.Logger = slog.New(slog.NewJSONHandler(said, nil)) })
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
	require.Error(t, err)
	require.Contains(t, said.String(), "cannot go on with")
	require.NotContains(t, said.String(), "1e400")
	require.NotContains(t, said.String(), "secret-password")
}

func TestClose_AsksTheChildToEndBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	const trap = `import signal, sys, time
stubborn = sys.argv[1] == "stubborn"
def asked(*_):
    open("asked", "w").close()
    if not stubborn: sys.exit(0)
signal.signal(signal.SIGTERM, asked)
import json
for line in iter(sys.stdin.readline, ""):
    open("child.pid", "w").write(str(__import__("os").getpid()))
    record = json.loads(line)
    print(json.dumps({"dedup_key": record["dedup_key"], "attempt": record["attempt"], "ok": True}), flush=True)
while stubborn: time.sleep(1)
time.sleep(60)
`
	for how, grace := range map[string]time.Duration{"obedient": time.Minute, "stubborn": 3 * time.Second} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.sink(t, "", func(c *exec.Config) {
				c.Command, c.Grace = []string{"/usr/bin/python3", "-c", trap, how}, grace
			})
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			pid := b.pid(t, "child")
			require.NoError(t, s.Close())
			require.True(t, exists(filepath.Join(b.dir, "asked")))
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
			require.NoError(t, s.Close(), "a second time")
			sinktest.Delivered(t, s, sinktest.Deliveries(2, 1)) // a later delivery starts another
		})
	}
}

func TestNew_NamesEveryFaultAndNoSecret(t *testing.T) {
	t.Parallel()
	_, err := exec.New(exec.Config{Env: map[string]string{"A=B": "x", "C": "secret\x00password"}, Window: -1, Timeout: -1, MaxBytes: 1, Grace: time.Hour})
	for _, want := range []string{"command is missing", `"A=B" is not the name`, `the value of "C" holds a NUL`, "window", "timeout", "max_bytes", "grace"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "password")
	config := exec.Config{Command: []string{"x", "--token=secret-password"}, Env: map[string]string{"T": "secret-password"}}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", config, config, config), "secret-password")
}
