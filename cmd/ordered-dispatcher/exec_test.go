package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// fenced is the first block of a language on a page of docs/sinks.
func fenced(t testing.TB, page, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/sinks/" + page)
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(text), "```"+language+"\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	return block
}

// execConfig is the configuration of docs/sinks/exec.md for the table of this test
// and a child of the page, in a directory of its own.
func execConfig(t testing.TB, language, program, name string) (config, dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(fenced(t, "exec.md", language)), 0o600))
	return file(t, strings.NewReplacer(
		"table: public.mails", "table: public.bookings",
		"/usr/bin/python3", program,
		"/opt/mails/sink.py", filepath.Join(dir, name),
		"/opt/mails", dir,
		"${SMTP_PASSWORD}", "secret-password",
	).Replace(fenced(t, "exec.md", "yaml"))), dir
}

func TestDrain_IntoExecChildrenOfTheDocumentation(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3"
	for language, c := range map[string]struct {
		program, name string
		read          func(dir string) *exec.Cmd
	}{
		"python": {python, "sink.py", func(dir string) *exec.Cmd {
			return exec.Command(python, "-c", `import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("SELECT sequence, customer FROM mail ORDER BY rowid"): print(*row)`, filepath.Join(dir, "mails.db"))
		}},
		"js": {pgtest.Require(t, "node"), "sink.js", func(dir string) *exec.Cmd { return exec.Command("cat", filepath.Join(dir, "mails.txt")) }},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 20)
			config, dir := execConfig(t, language, c.program, c.name)
			execute(t, pool, "INSERT INTO public.bookings (customer) VALUES (U&'line\\2028separator')")
			code, _, stderr := do(t, address, "run", "--drain", "-c", config)
			require.Zero(t, code, stderr)
			got, err := c.read(dir).Output()
			require.NoError(t, err)
			want := ""
			for n := range 20 {
				want += fmt.Sprintf("%d c%d\n", n+1, n+1)
			}
			require.Equal(t, want+"21 line\u2028separator\n", string(got))
			require.Empty(t, inDirectory(t, dir), "children that are left")
			require.NotContains(t, stderr, "secret-password")

			execute(t, pool, "ALTER TABLE public.bookings ALTER customer DROP NOT NULL; INSERT INTO public.bookings (customer) VALUES (NULL)")
			code, _, stderr = do(t, address, "run", "--drain", "-c", config)
			require.Equal(t, 3, code, "a record that the child refuses for good halts: %s", stderr)
		})
	}
}

// A worker that is killed takes its child along: it reads the end of its input.
func TestRun_ExecChildEndsWithAWorkerThatIsKilled(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	config, dir := execConfig(t, "python", "/usr/bin/python3", "sink.py")
	p := start(t, address, "run", "-c", config)
	require.Eventually(t, func() bool { return sequenceOr0(t, pool, "mails") == 3 }, patience, tick)
	require.Len(t, inDirectory(t, dir), 1)
	p.signal(syscall.SIGKILL)
	p.wait()
	require.Eventually(t, func() bool { return len(inDirectory(t, dir)) == 0 }, patience, tick)
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
}

func TestDoctor_FindsAnExecCommandThatIsNotThere(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 0)
	for sink, want := range map[string]string{
		`exec: {command: [no-such-program]}`:       "no-such-program",
		`exec: {command: [sh], dir: /no/such/dir}`: "/no/such/dir",
	} {
		code, out, _ := do(t, address, "doctor", "-c", processes(t, map[string]string{"a": sink}))
		require.Equal(t, 1, code)
		require.Contains(t, out, want)
	}
	for sink, want := range map[string]string{
		`exec: {command: sh}`:                    "expected a list",
		`exec: {command: []}`:                    "command is missing",
		`exec: {command: [sh, {a: b}]}`:          "expected a single value",
		`exec: {command: [sh], window: 2}`:       "needs a checkpoint of at least as many",
		`exec: {command: [sh], shell: true}`:     "shell",
		`exec: {command: [sh], env: {"A=B": x}}`: "is not the name of a variable",
	} {
		code, _, stderr := do(t, "", "check", "-c", processes(t, map[string]string{"a": sink}))
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}

// inDirectory are the processes that run in a directory.
func inDirectory(t testing.TB, dir string) (pids []string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && at == dir {
			pids = append(pids, link)
		}
	}
	return pids
}
