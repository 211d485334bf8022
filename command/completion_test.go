package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestComplete_CommandsFlagsAndProcesses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"sta":                          "status",
		"dead-letter ":                 "list show replay discard",
		"seek --to-i":                  "--to-id",
		"status --w":                   "--wide --watch",
		"--log-level ":                 "debug info warn error",
		"--log-level=w":                "--log-level=warn",
		"completion ":                  "bash zsh fish",
		"complet":                      "completion",
		"dead-letter list --limit ":    "",
		"dead-letter show ":            "",
		"pause -c /no/such.yaml ":      "",
		"nothing of this is a command": "",
	} {
		require.Equal(t, want, completed(t, nil, line), line)
	}
	file := names(t)
	require.Equal(t, "bookings beds@v2", completed(t, map[string]string{configVariable: file}, "pause "), "a shell would read more into the third")
	for _, line := range []string{"status -c " + file + " bo", "history --config=" + file + " bo", "history --config = " + file + " bo", "dead-letter replay -c " + file + " --process bo"} {
		require.Equal(t, "bookings", completed(t, nil, line), line)
	}
	require.Equal(t, "--process=bookings", completed(t, map[string]string{configVariable: file}, "dead-letter discard --process=bo"))
}

// completed are the words that complete a line.
func completed(t testing.TB, environment map[string]string, line string) string {
	t.Helper()
	words := strings.Split(line, " ")
	code, stdout, stderr := run(environment, append([]string{"complete", "--"}, words...)...)
	require.Zero(t, code, stderr)
	var all []string
	for printed := range strings.Lines(stdout) {
		word, _, _ := strings.Cut(strings.TrimSuffix(printed, "\n"), "\t")
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// The shell itself asks, as it does at a tab. proof/deploy has the same with the program and the scripts of a package.
func TestCompletion_InEachShell(t *testing.T) {
	t.Parallel()
	for shell, name := range map[string]string{"bash": "ordered-dispatcher", "zsh": "_ordered-dispatcher", "fish": "ordered-dispatcher.fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir, bin := t.TempDir(), t.TempDir()
			_, script, _ := run(nil, "completion", shell)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o600))
			program := "#!/bin/sh\nprintf '<%s>' \"$@\" > \"$0.asked\"\nprintf 'list\\tList them: all\\nb$(touch x)\\n'\n"
			require.NoError(t, os.WriteFile(filepath.Join(bin, "ordered-dispatcher"), []byte(program), 0o700))
			ask, err := filepath.Abs("testdata/completion/ask." + shell)
			require.NoError(t, err)

			command := exec.Command(pgtest.Require(t, shell), ask)
			command.Dir = dir
			command.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "SCRIPT=" + filepath.Join(dir, name), "FOUND=" + filepath.Join(dir, "found")}
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%s", out)
			found, err := os.ReadFile(filepath.Join(dir, "found"))
			require.NoError(t, err, "%s", out)
			require.Subset(t, []string{"list", "b$(touch x)"}, strings.Split(strings.TrimSpace(string(found)), "\n"))
			require.Contains(t, string(found), "list\n")
			require.NoFileExists(t, filepath.Join(dir, "x"), "nothing of an offer is run")
			asked, err := os.ReadFile(filepath.Join(bin, "ordered-dispatcher.asked"))
			require.NoError(t, err)
			require.Equal(t, "<complete><--><dead-letter><>", string(asked))
		})
	}
}
