//go:build unix

package throwaway

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// swapScript puts links to a file of root in the place of what root would write, and takes them away again.
const swapScript = `
while :; do
	for name in password program log pids; do
		rm -rf "$1/$name"; ln -sfn "$2" "$1/$name"
	done
	rm -f "$1/password" "$1/program" "$1/log" "$1/pids"; mkdir -p "$1/pids"
done`

// TestDir_RootFollowsNoLinkOfTheProgramsUser plays the race: the user swaps links in and out while root works.
func TestDir_RootFollowsNoLinkOfTheProgramsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has a user of its own for programs")
	}
	d := newDir(t)
	treasure := filepath.Join(t.TempDir(), "treasure")
	require.NoError(t, os.WriteFile(treasure, []byte("root's"), 0o600))
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho words\n"), 0o755))

	untouched := func() {
		t.Helper()
		content, err := os.ReadFile(treasure)
		require.NoError(t, err)
		require.Equal(t, "root's", string(content))
		info, err := os.Stat(treasure)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Zero(t, info.Sys().(*syscall.Stat_t).Uid)
	}
	work := func() {
		_ = d.WriteFile("password", []byte("secret"))
		_ = d.AppendFile("password", []byte("secret"))
		_, _ = d.Executable(program)
		if p, err := d.Start("log", "/bin/echo", "words"); err == nil {
			<-p.Done()
		}
		require.NotContains(t, d.Tail("log", 5), "root's")
	}
	for _, name := range []string{"password", "program", "log"} {
		_, err := d.Run(t.Context(), "ln", "-sfn", treasure, d.Path(name))
		require.NoError(t, err)
	}
	work()
	untouched()

	swap := d.Command(t.Context(), "sh", "-c", swapScript, "sh", d.Path(), treasure)
	require.NoError(t, swap.Start())
	defer func() { _ = swap.Wait() }()
	defer func() { _ = swap.Process.Kill() }()
	for range 20 {
		work()
		untouched()
	}
}

// TestDir_RootRemovesOnlyWhatIsEmpty: whoever runs as the same user may answer for mktemp.
func TestDir_RootRemovesOnlyWhatIsEmpty(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkPath("/tmp", "/tmp/throwaway-Ab3dEf9x"))
	for _, path := range []string{"/etc", "/tmp", "/tmp/throwaway-", "/tmp/throwaway-a/../../etc", "/tmp/throwaway-a/b", "/tmp/throwaway-a\n/etc"} {
		require.Error(t, checkPath("/tmp", path), path)
	}
}

// TestStart_NamesAMissingProgram: the shell that starts it would only log that.
func TestStart_NamesAMissingProgram(t *testing.T) {
	t.Parallel()
	_, err := newDir(t).Start("log", "no-such-program")
	require.ErrorIs(t, err, exec.ErrNotFound)
}
