package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

var (
	codeBlock   = regexp.MustCompile("(?ms)^[ \t]*```(\\w*)[^\n]*\n(.*?)^[ \t]*```$")
	inline      = regexp.MustCompile("`(ordered-dispatcher [^`]+)`")
	indented    = regexp.MustCompile(`(?m)^ {4}((?:[A-Z_]+=\S+ )?ordered-dispatcher .*)$`)
	environment = regexp.MustCompile(`\$\{([A-Z_]+)\}`)
	secretFile  = regexp.MustCompile(`\$\{file:[^}]+\}`)
	topLevel    = regexp.MustCompile(`(?m)^(database|admin|retention|notify|processes):`)
	psqlCommand = regexp.MustCompile(`(?m)^\\.*\n`)
)

// carriedOut are the languages whose blocks stand in no page but those that a test of their own carries out, and that test.
var carriedOut = map[string]map[string]string{
	"python":  {"producers.md": "TestProducers_", "quickstart.md": "TestQuickstart_", "tutorial.md": "TestTutorial_", "exec.md": "TestExec_"},
	"js":      {"producers.md": "TestProducers_", "exec.md": "TestExec_"},
	"java":    {"producers.md": "TestProducers_"},
	"php":     {"producers.md": "TestProducers_"},
	"console": {"read-models.md": "TestShadow_, TestSwitch_"},
}

// TestBlocks_EachIsAccepted: the code of all documents is what the program, the server and the shell accept. Many pages
// are carried out, too: see page. The Go of all pages is compiled: see TestSnippets in proof/reference.
func TestBlocks_EachIsAccepted(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	b := codeOfPages{seen: map[string]int{}, tried: map[string]bool{}}
	b.ca, b.cert, b.key = brokertest.NewCertificates(t).Write(t)
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
			language, code := block[1], block[2]
			b.seen[language]++
			switch language {
			case "yaml":
				b.acceptYAML(t, path, code)
			case "sql":
				acceptSQL(t, pool, path, code)
			case "sh":
				b.acceptShell(t, path, code)
			case "json":
				require.True(t, json.Valid([]byte(code)), "%s:\n%s", path, code)
			case "go", "text", "":
			default:
				require.NotEmpty(t, carriedOut[language][filepath.Base(path)], "%s has a block of %s, and no test carries it out", path, language)
			}
		}
		outside := codeBlock.ReplaceAllString(string(text), "")
		for _, pattern := range []*regexp.Regexp{inline, indented} {
			for _, command := range pattern.FindAllStringSubmatch(outside, -1) {
				b.seen["command"]++
				b.acceptCommand(t, path, strings.Join(strings.Fields(command[1]), " ")) // a line may break within it
			}
		}
	}
	for _, language := range []string{"yaml", "sql", "sh", "json", "command"} {
		require.Positive(t, b.seen[language], language)
	}
}

// codeOfPages is what was found and tried on all pages.
type codeOfPages struct {
	seen          map[string]int  // by language
	tried         map[string]bool // commands: many stand on several pages
	ca, cert, key string
}

// documents are the pages of the site.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/sinks/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(path string) bool { return filepath.Base(path) == "commands.md" }) // made from the program
}

// acceptYAML: a part of a configuration is put where it belongs.
func (b *codeOfPages) acceptYAML(t *testing.T, path, code string) {
	t.Helper()
	const process = "processes:\n  a:\n    source: {table: public.bookings, columns: {type: type, headers: headers, payload: payload}}\n    start: end\n    sink: {stdout: {}}\n"
	switch {
	case strings.HasPrefix(code, "# values.yaml"):
		return // of the chart: see proof/deploy
	case strings.Contains("\n"+code, "\nprocesses:"):
	case topLevel.MatchString(code):
		code = process + code
	case strings.HasPrefix(code, "statement:"):
		code = "processes:\n  a:\n    source: {table: public.a, columns: {key: key}}\n    sink:\n      sql:\n" + indent(code, "        ")
	case strings.HasPrefix(code, "source:"):
		code = "processes:\n  a:\n" + indent(code, "    ") + "    sink: {stdout: {}}\n"
	default:
		code = process + indent(code, "    ")
	}
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600))
	code = strings.NewReplacer("/etc/dispatcher/ca.pem", b.ca, "/etc/dispatcher/cert.pem", b.cert, "/etc/dispatcher/key.pem", b.key, "/etc/ssl/ledger.pem", b.ca).Replace(code)
	config := file(t, secretFile.ReplaceAllLiteralString(code, "${file:"+secret+"}"))
	cmd := exec.Command(binary, "check", "-c", config)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	for _, name := range environment.FindAllStringSubmatch(code, -1) {
		value := "a-secret-of-thirty-two-bytes-xxx"
		if strings.HasSuffix(name[1], "_URL") {
			value = "https://receiver.example"
		}
		if name[1] == "DATABASE_URL" {
			value = "postgres://nowhere.example/x"
		}
		cmd.Env = append(cmd.Env, name[1]+"="+value)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s:\n%s\n%s", path, code, out)
}

func indent(code, by string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(by + line)
	}
	return b.String()
}

// acceptSQL has the server parse the statements. It does not run them.
func acceptSQL(t *testing.T, pool *pgxpool.Pool, path, code string) {
	t.Helper()
	code = strings.TrimSuffix(strings.TrimSpace(psqlCommand.ReplaceAllString(code, "")), ";")
	_, err := pool.Exec(context.Background(), "DO $of_a_page$ BEGIN RETURN;\n"+code+";\nEND $of_a_page$")
	require.NoError(t, err, "%s:\n%s", path, code)
}

// acceptShell has bash parse a block, and the program the flags of each of its own commands.
func (b *codeOfPages) acceptShell(t *testing.T, path, code string) {
	t.Helper()
	cmd := exec.Command(pgtest.Require(t, "bash"), "-n")
	cmd.Stdin = strings.NewReader(code)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s:\n%s\n%s", path, code, out)
	for line := range strings.Lines(strings.ReplaceAll(code, "\\\n", " ")) {
		if strings.HasPrefix(line, "ordered-dispatcher ") {
			b.acceptCommand(t, path, strings.TrimSpace(line))
		}
	}
}

// acceptCommand: there is such a command, with such flags. bash parts the words.
func (b *codeOfPages) acceptCommand(t *testing.T, path, command string) {
	t.Helper()
	command = strings.NewReplacer("…", "x", "NUMBER", "1").Replace(command)
	for _, end := range []string{" |", " &&", " #", " &", ";", " >"} {
		command, _, _ = strings.Cut(command, end)
	}
	if b.tried[command] {
		return
	}
	b.tried[command] = true
	cmd := exec.Command(pgtest.Require(t, "bash"), "-c", command+" --help")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s\n%s", path, command, out)
}
