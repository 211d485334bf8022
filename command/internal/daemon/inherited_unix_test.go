//go:build unix

package daemon_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// In a process of its own: the marks are the whole process's.
func TestCloseOnExec_NoChildHasAFileThatTheDaemonWasStartedWith(t *testing.T) {
	const inner = "ORDERED_DISPATCHER_TEST_INHERITED"
	if os.Getenv(inner) != "" {
		read := osexec.CommandContext(t.Context(), "cat", "/dev/fd/3")
		require.NoError(t, daemon.CloseOnExec())
		out, err := read.CombinedOutput()
		require.Error(t, err)
		require.NotContains(t, string(out), "the password")
		return
	}
	secret := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(secret, []byte("the password"), 0o600))
	file, err := os.Open(secret)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	command := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCloseOnExec_NoChildHasAFileThatTheDaemonWasStartedWith$")
	command.Env = append(os.Environ(), inner+"=1")
	command.ExtraFiles = []*os.File{file}
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
}
