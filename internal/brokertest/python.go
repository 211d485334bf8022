package brokertest

import (
	"os"
	"os/exec"
	"testing"
)

// Python returns an interpreter that has a module: Debian's, or the one in PATH. If there is none, the test is
// skipped; if CI is set, it fails.
func Python(t testing.TB, module string) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.CommandContext(t.Context(), path, "-c", "import "+module).Run() == nil {
			return path
		}
	}
	const message = "this test needs Python with the module %s; install it (on Debian: apt-get install python3-%[1]s)"
	if os.Getenv("CI") != "" {
		t.Fatalf(message, module)
	}
	t.Skipf(message, module)
	return ""
}
