package main_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const good = "processes: {a: {source: {table: bookings}, sink: {stdout: {}}}}\n"

// nowhere is a database that cannot be reached.
const nowhere = "postgres://u:CANARY@127.0.0.1:1/nowhere"

func TestExitCodes(t *testing.T) {
	t.Parallel()
	goodFile, badFile := file(t, good), file(t, "processes: {a: {source: {tabel: bookings}, sink: {stdout: {}}}}\n")
	named := file(t, "database: "+nowhere+"\n"+good)
	for _, c := range []struct {
		name, database string
		args           []string
		code           int
		stderr         string
	}{
		{"no command", "", nil, 2, "--help"},
		{"unknown command", "", []string{"frobnicate"}, 2, "frobnicate"},
		{"no such level", "", []string{"--log-level", "loud", "status"}, 2, `--log-level: "loud" is not a level: write debug, info, warn or error; see`},
		{"a duration without a unit", "", []string{"skip", "a", "--timeout", "2"}, 2, `--timeout: "2" is not a duration: write it as 500ms, 30s or 2m; see`},
		{"unknown flag", "", []string{"run", "--frobnicate"}, 2, "unknown flag --frobnicate"},
		{"log level", "", []string{"check", "-c", goodFile, "--log-level=loud"}, 2, "loud"},
		{"help", "", []string{"--help"}, 0, ""},
		{"version", "", []string{"--version"}, 0, ""},
		{"check", "", []string{"check", "-c", goodFile}, 0, ""},
		{"check without file", "", []string{"check"}, 2, "no configuration: name it with -c FILE. The environment has no ORDERED_DISPATCHER_CONFIG, and "},
		{"a group alone", "", []string{"dead-letter"}, 2, "dead-letter replay"},
		{"the hint names the command", "", []string{"dead-letter", "replay", "--nope"}, 2, "unknown flag --nope; see `ordered-dispatcher dead-letter replay --help`"},
		{"check of a missing file", "", []string{"check", "-c", "/missing"}, 2, "name a file that exists"},
		{"check of a bad file", "", []string{"check", "-c", badFile}, 2, `dispatcher.yaml:1:26: processes.a.source: the key "tabel" is not known`},
		{"wrong type", "", []string{"run", "-c", file(t, "processes:\n  a: {source: {table: t}, sink: {stdout: {}}, batch: many}\n")}, 2, `dispatcher.yaml:2:54: processes.a.batch: "many" is not a whole number: write one from 1 to 10000`},
		{"process twice", "", []string{"run", "-c", file(t, "processes:\n  a: {source: {table: t}, sink: {stdout: {}}}\n  a: {source: {table: t}, sink: {stdout: {}}}\n")}, 2, `dispatcher.yaml:3:3: processes: the key "a" is here twice: keep one`},
		{"missing variable", "", []string{"run", "-c", file(t, "database: ${NOPE}\n"+good)}, 2, "dispatcher.yaml:1:11: database: the environment has no variable NOPE: set it"},
		{"impossible duration", "", []string{"run", "-c", file(t, "processes:\n  a: {source: {table: t}, sink: {stdout: {}}, poll: 10 parsecs}\n")}, 2, `dispatcher.yaml:2:53: processes.a.poll: "10 parsecs" is not a duration: write a number with a unit`},
		{"run of a bad file", "", []string{"run", "-c", badFile}, 2, `1 | processes: {a: {source: {tabel: ***}, sink: {stdout: {}}}}`},
		{"run without database", "", []string{"run", "-c", goodFile}, 2, "set DATABASE_URL"},
		{"run without grace", nowhere, []string{"run", "-c", goodFile, "--grace=0s"}, 2, "--grace"},
		{"bad DATABASE_URL", "postgres://u:CANARY/x@h/d", []string{"run", "-c", goodFile}, 2, "percent-encode"},
		{"migrate without database", "", []string{"migrate", "up"}, 2, "set DATABASE_URL"},
		{"migrate down without --yes", nowhere, []string{"migrate", "down"}, 2, "--yes"},
		{"migrate, a misspelt url", "postgers://u:CANARY@127.0.0.1:1/d?sslmode=disable", []string{"migrate", "up"}, 2, "write it as postgres://user:password@host:5432/database"},
		{"status, a misspelt url", "postgers://u:CANARY@127.0.0.1:1/d?sslmode=disable", []string{"status"}, 2, "write it as postgres://user:password@host:5432/database"},
		{"migrate, no database there", nowhere, []string{"migrate", "up"}, 1, "start the server, or correct host and port"},
		{"status, no database there", nowhere, []string{"status"}, 1, "start the server, or correct host and port"},
		{"status by file, no database there", "", []string{"status", "-c", named}, 1, "start the server, or correct host and port"},
		{"grants without a role", nowhere, []string{"grants", "-c", goodFile}, 2, "--role=NAME"},
		{"grants, no database there", nowhere, []string{"grants", "-c", goodFile, "--role=r"}, 1, "start the server, or correct host and port"},
		{"partitions, no database there", nowhere, []string{"partitions", "-c", goodFile}, 1, "start the server, or correct host and port"},
		{"doctor, no database there", nowhere, []string{"doctor", "-c", goodFile}, 1, "doctor found something"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := do(t, c.database, c.args...)
			require.Equal(t, c.code, code)
			require.Contains(t, ended(stderr), c.stderr)
			require.NotContains(t, stdout+stderr, "CANARY")
		})
	}
}

func TestCheck_ReadsStdin(t *testing.T) {
	t.Parallel()
	p := startWith(t, "", good, "check", "-c", "-")
	require.Zero(t, p.wait())
	require.Contains(t, p.stdout.String(), "-: the file is valid (processes: a)")
	p = startWith(t, "", "nothing: here", "check", "-c", "-")
	require.Equal(t, 2, p.wait())
	require.Contains(t, p.stderr.String(), `stdin:1:1: the key "nothing" is not known`)
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	run := func(args ...string) string {
		code, stdout, stderr := do(t, database, append([]string{"migrate"}, args...)...)
		require.Zero(t, code, stderr)
		return stdout
	}
	require.Regexp(t, `1 +no +00001_cursor.sql`, run("status", "--schema=od"))
	require.Contains(t, run("up", "--schema=od"), "applied 00001_cursor.sql")
	require.Contains(t, run("up", "--schema=od"), "nothing to apply")
	require.Regexp(t, `1 +2\d{3}-.*Z +00001_cursor.sql`, run("status", "--schema=od"))
	require.Regexp(t, `1 +no +00001_cursor.sql`, run("status"), "of the schema public")
	require.Contains(t, run("print", "--schema=od"), "CREATE TABLE cursor")

	path := file(t, "schema: od\n"+good)
	require.Contains(t, run("up", "-c", path), "nothing to apply")
	require.Contains(t, run("down", "--yes", "-c", path), "took back 00007_event_action.sql")
}

func TestGrants_MakeAScript(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	code, stdout, stderr := do(t, address, "grants", "-c", processes(t, map[string]string{"a": "stdout: {}"}), "--role=Some One")
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^GRANT SELECT ON "public"."bookings" TO "Some One"; -- a$`, stdout)
	require.NotRegexp(t, `(?m)^[^G\n-]`, stdout, "commands and comments alone")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)

	code, stdout, _ := do(t, address, "status", "-c", config)
	require.Zero(t, code)
	require.Regexp(t, `a +(no worker|running) +0 +0s +\S+ +\S+ +1\n`, stdout)
	code, stdout, _ = do(t, address, "status", "a", "--json")
	require.Zero(t, code)
	require.Contains(t, stdout, `{"processes":[{"process":"a","state":"`)
	for _, args := range [][]string{{"status", "b"}, {"status", "b", "-c", config}, {"status", "b", "--watch"}} {
		code, _, stderr = do(t, address, args...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, `there is no process "b": there are a`)
	}

	p := start(t, address, "status", "--watch", "-c", config)
	p.stdout.until(t, 2, "no worker")
	p.signal(syscall.SIGINT)
	require.Zero(t, p.wait())
}
