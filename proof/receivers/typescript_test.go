package receivers

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// typescript is a copy of the receiver with its packages, and compiled.
var typescript = sync.OnceValues(func() (string, error) {
	return prepared("typescript", exec.Command("npm", "ci"), exec.Command("npm", "run", "build"))
})

func node(t *testing.T) (dir, interpreter string) {
	t.Helper()
	pgtest.Require(t, "npm")
	interpreter = pgtest.Require(t, "node")
	dir, err := typescript()
	require.NoError(t, err)
	return dir, interpreter
}

func typescriptReceiver(t *testing.T) []string {
	dir, interpreter := node(t)
	return []string{interpreter, filepath.Join(dir, "dist", "examples", "bookings.js")}
}

func TestTypeScript_PassesItsTests(t *testing.T) {
	t.Parallel()
	dir, interpreter := node(t)
	run(t, dir, interpreter, "--test", filepath.Join("dist", "test", "inbox.test.js"))
}

// What npm publishes has the compiled files and the tables, and nothing else.
func TestTypeScript_IsPackagedWithItsTables(t *testing.T) {
	t.Parallel()
	dir, _ := node(t)
	out := run(t, dir, "npm", "pack", "--dry-run", "--ignore-scripts", "--json")
	for _, name := range []string{`"dist/src/index.js"`, `"dist/src/index.d.ts"`, `"tables.sql"`, `"README.md"`, `"LICENSE"`} {
		require.Contains(t, out, name)
	}
	require.NotContains(t, strings.ReplaceAll(out, "\\", "/"), `"dist/test`)
}
