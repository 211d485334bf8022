//go:build linux

package exec_test

import (
	"encoding/json"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// confession is what a child says of itself, by files in its directory.
type confession struct {
	UID, GID, Groups []int
	Capabilities     string
	Environ, Kill    string // how it fails at its parent's
	Home, User       string
}

const confess = `import json, os, subprocess, sys
def fails(f):
    try: f()
    except OSError as e: return type(e).__name__
    return "no error"
parent = os.getppid()
said = dict(UID=os.getresuid(), GID=os.getresgid(), Groups=os.getgroups(),
    Capabilities=[l.split()[1] for l in open("/proc/self/status") if l.startswith("CapPrm")][0],
    Environ=fails(lambda: open("/proc/%d/environ" % parent).read()), Kill=fails(lambda: os.kill(parent, 0)),
    Home=os.environ.get("HOME", ""), User=os.environ.get("USER", ""))
open("said", "w").write(json.dumps(said))
open("/dev/stderr", "w").write("hello\n")
line = sys.stdin.readline()
if "hang" in sys.argv:
    held = subprocess.Popen(["sleep", "600"])
    open("child.pid", "w").write(str(os.getpid()))
    open("grandchild.pid", "w").write(str(held.pid))
    held.wait()
record = json.loads(line)
print(json.dumps({"dedup_key": record["dedup_key"], "attempt": record["attempt"], "ok": True}), flush=True)
sys.stdin.read()
`

// openBench is a bench in which everyone may write. Each directory above it may be entered.
func openBench(t testing.TB) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change the user")
	}
	dir, err := os.MkdirTemp("/tmp", "exec-user-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	return &bench{dir: dir}
}

// asUser runs the confessing child.
func (b *bench) asUser(t testing.TB, user string, args ...string) *exec.Sink {
	return b.sink(t, "", func(c *exec.Config) {
		c.Command = append([]string{"/usr/bin/python3", "-c", confess}, args...)
		c.User, c.Timeout = user, 5*time.Second
	})
}

func TestDeliverBatch_AChildOfAnotherUserHasNoRightOfRoots(t *testing.T) {
	groups, err := syscall.Getgroups()
	require.NoError(t, err)
	b := openBench(t)
	require.NoError(t, syscall.Setgroups([]int{0, 4242}))
	t.Cleanup(func() { require.NoError(t, syscall.Setgroups(groups)) })
	nobody, err := osuser.Lookup("nobody")
	require.NoError(t, err)
	uid, err := strconv.Atoi(nobody.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(nobody.Gid)
	require.NoError(t, err)
	for user, want := range map[string]confession{
		"nobody":    {UID: []int{uid, uid, uid}, GID: []int{gid, gid, gid}, Home: nobody.HomeDir, User: "nobody"},
		nobody.Uid:  {UID: []int{uid, uid, uid}, GID: []int{gid, gid, gid}, Home: nobody.HomeDir, User: "nobody"},
		"4321:8765": {UID: []int{4321, 4321, 4321}, GID: []int{8765, 8765, 8765}},
	} {
		require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "said")))
		s := b.asUser(t, user)
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
		var said confession
		require.NoError(t, json.Unmarshal([]byte(b.read(t, "said")), &said))
		require.NotContains(t, said.Groups, 0, "of root")
		require.NotContains(t, said.Groups, 4242, "of root")
		said.Groups = nil
		want.Capabilities, want.Environ, want.Kill = "0000000000000000", "PermissionError", "PermissionError"
		require.Equal(t, want, said, user)
		require.NoError(t, s.Close())
	}
}

func TestDeliverBatch_AChildOfAnotherUserThatHangsIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	b := openBench(t)
	n, err := sinktest.Deliver(t, b.asUser(t, "nobody", "hang"), sinktest.Deliveries(1, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "no answer within 5s")
	for _, who := range []string{"child", "grandchild"} {
		pid := b.pid(t, who)
		require.Eventually(t, func() bool { return dead(pid) }, time.Minute, 5*time.Millisecond, who)
	}
}

// A child in the session of a shell can read its keys, and type into it (TIOCSTI).
func TestDeliverBatch_AChildHasNotTheTerminalOfItsParent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sinktest.Delivered(t, b.sink(t, "stat", nil), sinktest.Deliveries(1, 1))
	said := b.read(t, "stat") // pid (name) state ppid group session terminal …
	pid, _, _ := strings.Cut(said, " ")
	fields := strings.Fields(said[strings.LastIndex(said, ")")+1:])
	require.Equal(t, []string{pid, pid, "0"}, fields[2:5])
}

// What only root can enter, the child cannot: that is so for every record.
func TestDeliverBatch_AUserThatCannotReachTheDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	b := openBench(t)
	require.NoError(t, os.Chmod(b.dir, 0o700))
	n, err := sinktest.Deliver(t, b.asUser(t, "nobody"), sinktest.Deliveries(1, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "correct command, dir and user")
	require.Contains(t, fmt.Sprint(err), `as user "nobody"`)
}
