package receivers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// languages is how to start the receiver of each: arguments of env(1).
var languages = map[string]func(t *testing.T) []string{
	"Go": func(t *testing.T) []string {
		path, err := built("bookings", "./bookings")
		require.NoError(t, err)
		return []string{path}
	},
	"Python": func(t *testing.T) []string {
		return append(python(t), filepath.Join(source(t, "python"), "examples", "bookings.py"))
	},
}

// source returns the directory of a receiver.
func source(t *testing.T, language string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "receivers", language))
	require.NoError(t, err)
	return path
}

// copied returns a copy of a receiver's directory, where tools may leave files.
func copied(t *testing.T, language string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(source(t, language))))
	return dir
}

// run runs a tool to its end.
func run(t *testing.T, dir string, environment []string, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// python returns an interpreter that finds the package as pip installs it.
func python(t *testing.T) []string {
	t.Helper()
	interpreter, installed := brokertest.Python(t, "psycopg"), t.TempDir()
	run(t, copied(t, "python"), nil, interpreter, "-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--no-index", "--no-deps", "--no-build-isolation", "--target="+installed, ".")
	return []string{"PYTHONPATH=" + installed, "PYTHONDONTWRITEBYTECODE=1", interpreter}
}

// Each receiver's own tests run the vectors.
func TestPython_PassesItsTests(t *testing.T) {
	t.Parallel()
	args := append(python(t), "-m", "unittest", "discover", "--start-directory", "tests")
	run(t, source(t, "python"), []string{"DATABASE_URL=" + pgtest.URL(t)}, "env", args...)
}
