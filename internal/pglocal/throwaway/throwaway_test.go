//go:build unix

package throwaway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownerEnv makes this test binary an owner that another test ends: see TestMain.
const ownerEnv = "THROWAWAY_TEST_OWNER"

func TestMain(m *testing.M) {
	if how := os.Getenv(ownerEnv); how != "" {
		beOwner(how)
	}
	os.Exit(m.Run())
}

// beOwner makes a Dir with a running program, tells its path, and ends without Close, or waits to be killed.
func beOwner(how string) {
	d, err := New(context.Background())
	if err == nil {
		_, err = d.Start("log", "sleep", "600")
	}
	if err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(d.Path() + "\n")
	switch how {
	case "exit":
		os.Exit(0)
	case "panic":
		panic("as the test wants it")
	default:
		select {}
	}
}

func newDir(t *testing.T) *Dir {
	t.Helper()
	d, err := New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

func TestNew_OwnerGoneLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"exit", "panic", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			owner := exec.Command(os.Args[0])
			owner.Env = append(os.Environ(), ownerEnv+"="+how)
			stdout, err := owner.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, owner.Start())
			path, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			if how == "kill" {
				require.NoError(t, owner.Process.Kill())
			}
			_ = owner.Wait()
			path = strings.TrimSpace(path)
			require.Contains(t, path, "throwaway-")
			require.Eventually(t, func() bool {
				_, err := os.Stat(path)
				return os.IsNotExist(err)
			}, 20*time.Second, 10*time.Millisecond)
		})
	}
}

func TestClose_EndsProgramsAndRemovesTheDirectory(t *testing.T) {
	t.Parallel()
	d, err := New(t.Context())
	require.NoError(t, err)
	p, err := d.Start("log", "sleep", "600")
	require.NoError(t, err)

	require.NoError(t, d.Close(t.Context()))

	require.ErrorContains(t, p.Err(), "signal: quit")
	require.NoDirExists(t, d.Path())
	require.NoError(t, d.Close(t.Context()), "a second call")
}

func TestDir_OutlivesGarbageCollection(t *testing.T) {
	t.Parallel()
	p := func() *Process {
		d, err := New(t.Context())
		require.NoError(t, err)
		p, err := d.Start("log", "sleep", "600")
		require.NoError(t, err)
		return p
	}()
	for range 3 {
		runtime.GC()
	}
	select {
	case <-p.Done():
		t.Fatal("the guard ended a program whose Dir was merely out of sight")
	case <-time.After(200 * time.Millisecond): // what must not happen has no event to wait for
	}
	require.NoError(t, p.Stop(t.Context(), syscall.SIGKILL))
}

func TestRun_RootRunsProgramsAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root")
	}
	d := newDir(t)
	ids, err := d.Run(t.Context(), "id", "-u")
	require.NoError(t, err)
	require.NotEqual(t, "0", strings.TrimSpace(ids))
	groups, err := d.Run(t.Context(), "id", "-G")
	require.NoError(t, err)
	require.NotContains(t, strings.Fields(groups), "0")
}

func TestNew_RootWithPrivateTMPDIRFindsAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root")
	}
	private := t.TempDir()
	require.NoError(t, os.Chmod(private, 0o700))
	t.Setenv("TMPDIR", private)
	d := newDir(t)
	require.NotContains(t, d.Path(), private)
	_, err := d.Run(t.Context(), "touch", d.Path("reachable"))
	require.NoError(t, err)
}

func TestRun_EnvironmentCannotMisleadPostgreSQL(t *testing.T) {
	t.Setenv("PGDATA", "/nowhere")
	t.Setenv("LANG", "tlh_QO.UTF-8")
	d := newDir(t)
	env, err := d.Run(t.Context(), "env")
	require.NoError(t, err)
	require.NotContains(t, env, "PGDATA")
	require.NotContains(t, env, "tlh_QO")
	require.Contains(t, env, "LC_ALL=C\n")
}

func TestDir_NoProgramHasASecretOfOurEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "roots-own-secret")
	t.Setenv("DATABASE_URL", "postgres://u:roots-own-secret@h/d")
	t.Setenv("LD_LIBRARY_PATH", "/nowhere")
	programs := t.TempDir() // has a mktemp that looks around first
	require.NoError(t, errors.Join(os.Chmod(programs, 0o755), os.Chmod(filepath.Dir(programs), 0o755)))
	mktemp, err := exec.LookPath("mktemp")
	require.NoError(t, err)
	script := "#!/bin/sh\nenv | grep -q roots-own && exit 1\nexec " + mktemp + ` "$@"` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(programs, "mktemp"), []byte(script), 0o755))
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	d := newDir(t)
	env, err := d.Run(t.Context(), "env")
	require.NoError(t, err)
	require.NotContains(t, env, "roots-own-secret")
	guard, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", d.guard.cmd.Process.Pid))
	if err == nil { // where there is /proc
		require.NotContains(t, string(guard), "roots-own-secret")
	}
}

func TestNewOwn_NoOtherAccountReadsIt(t *testing.T) {
	t.Parallel()
	d, err := NewOwn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close(context.WithoutCancel(t.Context()))) })
	uid, err := d.Run(t.Context(), "id", "-u")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(os.Geteuid()), strings.TrimSpace(uid))
	info, err := os.Stat(d.Path())
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
}

func TestHead_IsShortWhateverIsThere(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	_, err := d.Run(t.Context(), "ln", "-s", "/dev/zero", d.Path("pid"))
	require.NoError(t, err)
	require.Len(t, d.Head("pid", 4096), 4096)
	require.Empty(t, d.Head("missing", 4096))
	require.NoError(t, d.WriteFile("long", bytes.Repeat([]byte("x"), 1<<20)))
	require.LessOrEqual(t, len(d.Tail("long", 30)), 1<<16)
}

func TestRun_ErrorCarriesWhatWasPrinted(t *testing.T) {
	t.Parallel()
	_, err := newDir(t).Run(t.Context(), "sh", "-c", "echo the reason >&2; exit 3")
	require.ErrorContains(t, err, "exit status 3: the reason")
}

func TestStop_KillsWhatDoesNotListen(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	p, err := d.Start("log", "sh", "-c", `trap "" INT; echo deaf; while :; do sleep 1; done`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.Tail("log", 1) == "deaf" }, time.Minute, time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Stop(ctx, os.Interrupt), context.DeadlineExceeded)
	require.ErrorContains(t, p.Err(), "signal: killed")
	require.NoError(t, p.Stop(t.Context(), os.Interrupt), "a second call")
}

func TestExecutable_CanBeRunByTheProgramsUser(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	private := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	program := filepath.Join(private, "say")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho here\n"), 0o700))
	path, err := d.Executable(program)
	require.NoError(t, err)
	out, err := d.Run(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "here\n", out)
}

func TestSignal_ReachesTheProgram(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	p, err := d.Start("log", "sleep", "60")
	require.NoError(t, err)
	require.NoError(t, p.Signal(syscall.SIGKILL))
	require.Error(t, p.Err())
	require.ErrorIs(t, p.Signal(syscall.SIGKILL), os.ErrProcessDone)
}

func TestTail_LastLines(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	require.NoError(t, d.WriteFile("log", []byte("a\nb\nc\n")))
	require.Equal(t, "b\nc", d.Tail("log", 2))
	require.Equal(t, "a\nb\nc", d.Tail("log", 9))
	require.Empty(t, d.Tail("no such file", 9))
}

func TestFreePort_StaysBelowOutgoingConnections(t *testing.T) {
	t.Parallel()
	for range 20 {
		port, err := FreePort()
		require.NoError(t, err)
		require.Less(t, port, 32_768)
	}
}

func TestWriteFile_IsPrivate(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	require.NoError(t, d.WriteFile("password", []byte("secret")))
	info, err := os.Stat(d.Path("password"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	out, err := d.Run(t.Context(), "cat", d.Path("password"))
	require.NoError(t, err)
	require.Equal(t, "secret", out)
}

// Of a thousand random ports of that range, some are the same.
func TestFreePort_ReturnsNoPortTwice(t *testing.T) {
	t.Parallel()
	before := map[int]bool{}
	for range 1000 {
		port, err := FreePort()
		require.NoError(t, err)
		require.False(t, before[port], port)
		before[port] = true
	}
}
