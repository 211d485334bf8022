package pgtest

import (
	"os"
	"testing"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
)

// packages names the package to install for a program, if its name differs from the program's.
var packages = map[string]string{
	"pgbench":       "postgresql",
	"pg_basebackup": "postgresql",
	"pg_ctl":        "postgresql",
	"psql":          "postgresql-client",
	"redis-cli":     "redis-tools",
	"nohup":         "coreutils",
	"promtool":      "prometheus",
	"java":          "openjdk-17-jre-headless",
	"javac":         "openjdk-17-jdk-headless",
	"mvn":           "maven",
	"php":           "php-cli",
}

// Require returns the path of a program, which it looks for in PATH and in the directories where PostgreSQL and
// daemons are installed. Without the program the test is skipped. If CI is set, it fails, because a test that
// silently no longer runs protects nothing.
func Require(t testing.TB, program string) string {
	t.Helper()
	path, ok := pglocal.LookPath(program)
	if ok {
		return path
	}
	name := program
	if packaged, ok := packages[program]; ok {
		name = packaged
	}
	const message = "this test needs %s, which is not on this machine; install it (on Debian: apt-get install %s)"
	if os.Getenv("CI") != "" {
		t.Fatalf(message, program, name)
	}
	t.Skipf(message, program, name)
	return ""
}
