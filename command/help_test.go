package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// run runs the program in this process. Its environment is the one given.
func run(environment map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	type exited int
	sys := system{stdin: strings.NewReader(""), stdout: &out, stderr: &err, exit: func(code int) { panic(exited(code)) }, env: func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}, kinds: daemon.Kinds{Sinks: []sinks.Spec{webhook.Spec()}}}
	defer func() {
		stdout, stderr = out.String(), err.String()
		switch end := recover().(type) {
		case nil:
		case exited: // after --help
			code = int(end)
		default:
			panic(end)
		}
	}()
	return execute(args, sys), "", ""
}

func TestHelp_OfEveryCommandFitsIntoEightyColumns(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, defaults())
	require.NoError(t, err)
	checked := 0
	var walk func(node *kong.Node)
	walk = func(node *kong.Node) {
		args := strings.Fields(node.FullPath())[1:]
		if node.Name == "complete" {
			return
		}
		_, stdout, _ := run(nil, append(args, "--help")...)
		require.True(t, strings.HasPrefix(stdout, "Usage: "), stdout)
		for _, line := range strings.Split(stdout, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 80, "%v: %s", args, line)
		}
		checked++
		for _, child := range node.Children {
			walk(child)
		}
	}
	parser.Model.Node.Name = "ordered-dispatcher"
	walk(parser.Model.Node)
	require.Greater(t, checked, 30)
}

func TestHelp_ShowsAlternativesAsAlternatives(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"seek":                "(--to-id=ID | --to-time=TIME | --to-position=POSITION | --to-start | --to-end) <process> [flags]",
		"status":              "[--json | --wide] [<process>] [flags]",
		"restored":            "(<process> ... | --all) [flags]",
		"dead-letter discard": "(<id> ... | --process=NAME (--all | --error=TEXT)) [flags]",
		"grants":              "--role=NAME [flags]",
	} {
		_, stdout, _ := run(nil, append(strings.Fields(args), "--help")...)
		usage, _, _ := strings.Cut(stdout, "\n\n")
		require.Equal(t, "Usage: ordered-dispatcher "+args+" "+want, strings.Join(strings.Fields(usage), " "))
	}
}

func TestHelp_IsTheAnswerToNoCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"dead-letter"}, {"migrate"}} {
		code, stdout, stderr := run(nil, args...)
		require.Equal(t, 2, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "Usage: "+strings.Join(append([]string{"ordered-dispatcher"}, args...), " ")+" <command> [flags]\n")
		require.Contains(t, stderr, "\nCommands:\n")
	}
	_, _, stderr := run(map[string]string{"COLUMNS": "9999"}, "dead-letter", "replay", "--nope")
	require.Equal(t, "ordered-dispatcher: unknown flag --nope; see `ordered-dispatcher dead-letter replay --help`\n", stderr)
	_, _, stderr = run(map[string]string{"COLUMNS": "9999"}, "nope")
	require.Contains(t, stderr, "; see `ordered-dispatcher --help`\n")
}

// names is a file with two processes; one of them no shell would read as it is.
func names(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "names.yaml")
	source := "{source: {table: public.b}, sink: {webhook: {url: http://127.0.0.1}}}"
	require.NoError(t, os.WriteFile(path, []byte("processes:\n  bookings: "+source+"\n  beds@v2: "+source+"\n  'b$(touch x)': "+source+"\n"), 0o600))
	return path
}

func TestSource_IsTheFlagOrTheVariable(t *testing.T) {
	t.Parallel()
	code, _, stderr := run(map[string]string{"COLUMNS": "9999", configVariable: "/no/such.yaml"}, "check")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, configVariable+" names /no/such.yaml: ")
	_, _, stderr = run(map[string]string{"COLUMNS": "9999", configVariable: "/no/such.yaml"}, "check", "-c", "/other.yaml")
	require.NotContains(t, stderr, configVariable)
	require.Contains(t, stderr, "/other.yaml")
	dir, err := os.Getwd()
	require.NoError(t, err)
	_, _, stderr = run(map[string]string{"COLUMNS": "9999"}, "status")
	require.Equal(t, "ordered-dispatcher: no database is named: set DATABASE_URL, or give database in a file named with -c. The environment has no "+
		configVariable+", and "+dir+" has no dispatcher.yaml\n", stderr)
}
