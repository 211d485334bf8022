package receivers

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

var (
	pythonOnce sync.Once
	pythonDir  string
	pythonErr  error
)

// python returns a copy of the receiver, and the arguments of env(1) for an interpreter that has the package as pip
// installs it.
func python(t *testing.T) (dir string, env []string) {
	t.Helper()
	interpreter := brokertest.Python(t, "psycopg")
	pythonOnce.Do(func() {
		pythonDir, pythonErr = prepared("python", exec.Command(interpreter, "-m", "pip", "install", "--quiet", "--root-user-action=ignore",
			"--no-index", "--no-deps", "--no-build-isolation", "--target=installed", "."))
	})
	require.NoError(t, pythonErr)
	return pythonDir, []string{"PYTHONPATH=" + filepath.Join(pythonDir, "installed"), "PYTHONDONTWRITEBYTECODE=1", interpreter}
}

func pythonReceiver(t *testing.T) []string {
	dir, env := python(t)
	return append(env, filepath.Join(dir, "examples", "bookings.py"))
}

func TestPython_PassesItsTests(t *testing.T) {
	t.Parallel()
	dir, env := python(t)
	run(t, dir, "env", append(env, "-m", "unittest", "discover", "--start-directory", "tests")...)
}

// What pip installs has the tables, and the license beside its metadata.
func TestPython_IsPackagedWithItsTablesAndItsLicense(t *testing.T) {
	t.Parallel()
	dir, _ := python(t)
	require.FileExists(t, filepath.Join(dir, "installed", "ordered_inbox", "tables.sql"))
	var found []string
	for _, place := range []string{"LICENSE", filepath.Join("licenses", "LICENSE")} { // older and newer versions of setuptools
		files, err := filepath.Glob(filepath.Join(dir, "installed", "ordered_inbox-*.dist-info", place))
		require.NoError(t, err)
		found = append(found, files...)
	}
	require.Len(t, found, 1)
}
