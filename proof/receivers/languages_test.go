package receivers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// receivers is how to start the receivers of each language: arguments of env(1). Several share a database.
var receivers = map[string][]func(t *testing.T) []string{
	"Go":         {goReceiver},
	"Python":     {pythonReceiver},
	"TypeScript": {typescriptReceiver},
	"Java":       {javaReceiver},
	"all four":   {goReceiver, pythonReceiver, typescriptReceiver, javaReceiver},
}

func goReceiver(t *testing.T) []string {
	path, err := built("bookings", "./bookings")
	require.NoError(t, err)
	return []string{path}
}

var sources = filepath.Join("..", "..", "receivers")

// prepared returns a copy of a receiver's directory, in which commands have run: their files do not come into the tree.
func prepared(language string, commands ...*exec.Cmd) (string, error) {
	dir := filepath.Join(testDir, language)
	copied, err := exec.Command("git", "-C", filepath.Join(sources, language), "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return "", fmt.Errorf("list the files of receivers/%s: %w", language, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(copied), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(sources, language, name))
		if err != nil {
			return "", err
		}
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return "", err
		}
	}
	for _, command := range commands {
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	}
	return dir, nil
}

// run runs a receiver's own program to its end, with a database, and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	vectors, err := filepath.Abs(filepath.Join("..", "..", "docs", "wire-vectors.json"))
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), "DATABASE_URL="+pgtest.URL(t), "WIRE_VECTORS="+vectors)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	return string(out)
}

// Receivers of two languages can share a database.
func TestReceivers_HaveTheTablesOfGo(t *testing.T) {
	t.Parallel()
	box, err := inbox.New(inbox.Config{Receiver: "any"})
	require.NoError(t, err)
	for _, name := range []string{
		"python/src/ordered_inbox/tables.sql",
		"typescript/tables.sql",
		"java/src/main/resources/io/github/ordereddispatcher/inbox/tables.sql",
	} {
		text, err := os.ReadFile(filepath.Join(sources, name))
		require.NoError(t, err)
		require.Equal(t, box.SQL(), strings.ReplaceAll(string(text), "{schema}", `"public"`), name)
	}
	script, err := os.ReadFile(filepath.Join(sources, "sql", "inbox.sql"))
	require.NoError(t, err)
	require.Contains(t, string(script), strings.ReplaceAll(box.SQL(), `"public"`, "public"))
}

// The example of each page is the receiver that the live test runs. The other one of TypeScript is run by its own tests.
func TestReceivers_HaveTheirExampleOnTheirPage(t *testing.T) {
	t.Parallel()
	for example, directory := range map[string]string{
		"examples/bookings.py": "python",
		"examples/bookings.ts": "typescript",
		"examples/missing.ts":  "typescript",
		"src/test/java/io/github/ordereddispatcher/inbox/Bookings.java": "java",
	} {
		page, err := os.ReadFile(filepath.Join(sources, directory, "README.md"))
		require.NoError(t, err)
		code, err := os.ReadFile(filepath.Join(sources, directory, example))
		require.NoError(t, err)
		require.Contains(t, string(page), "\n"+string(code)+"```\n", example)
	}
}

// A mirror of the registry installs them, too.
func TestReceivers_NameNoRegistry(t *testing.T) {
	t.Parallel()
	address := regexp.MustCompile(`"resolved"|https?://[a-z.]*(npmjs|pypi|pythonhosted|maven\.org|apache\.org/maven2)`)
	require.NoError(t, filepath.WalkDir(sources, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "target" || entry.Name() == "dist"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		require.NotRegexp(t, address, string(text), path)
		return err
	}))
}
