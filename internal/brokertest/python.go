package brokertest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Python returns an interpreter that has some modules: Debian's, or the one in PATH. If there is none, the test is
// skipped; if CI is set, it fails.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.CommandContext(t.Context(), path, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return path
		}
	}
	const message = "this test needs Python with %s; install it (on Debian: apt-get install python3-%s)"
	names := []any{strings.Join(modules, " and "), strings.Join(modules, " python3-")}
	if os.Getenv("CI") != "" {
		t.Fatalf(message, names...)
	}
	t.Skipf(message, names...)
	return ""
}
