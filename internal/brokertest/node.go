package brokertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// Node returns a command that runs a script with Node.js, beside the packages that the lock file of its directory
// names. They are installed once for each lock file, into the user's cache. A script that runs for five minutes is
// killed: no test needs so long.
func Node(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	node := pgtest.Require(t, "node")
	dir := installed(t, pgtest.Require(t, "npm"), filepath.Dir(script))
	content, err := os.ReadFile(script)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), filepath.Base(script))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(filepath.Dir(path), "node_modules")))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, node, append([]string{path}, args...)...)
}

// installed returns a directory with the packages. If several processes install at once, the first one's copy stays.
func installed(t testing.TB, npm, source string) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	digest := sha256.Sum256(lock)
	dir := filepath.Join(cache, "ordered-dispatcher", "npm", hex.EncodeToString(digest[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "install-")
	require.NoError(t, err)
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(fresh, name), content, 0o600))
	}
	command := exec.CommandContext(t.Context(), npm, "ci")
	command.Dir = fresh
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	if err := os.Rename(fresh, dir); !errors.Is(err, fs.ErrExist) {
		require.NoError(t, err)
	}
	return dir
}
