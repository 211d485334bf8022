package modules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writesItsConfig stands for goreleaser: what it would build is in its configuration.
const writesItsConfig = `#!/bin/sh
while [ "$1" != --config ]; do shift; done
into=$(sed -n 's/^dist: //p' "$2")
mkdir -p "$into"
cp "$2" "$into/config"
: >"$into/checksums.txt"
`

// TestDistribute_BuildsForAllSystemsUnlessOneIsNamed: proof/deploy builds with goreleaser itself, and for one alone.
func TestDistribute_BuildsForAllSystemsUnlessOneIsNamed(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	for _, name := range []string{"tools/distribute", ".goreleaser.yaml", "deploy/homebrew/ordered-dispatcher.rb"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o700))
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(tree, name), content, 0o700))
	}
	require.NoError(t, os.Mkdir(filepath.Join(tree, "bin"), 0o700))
	for _, name := range []string{"goreleaser", "cyclonedx-gomod"} {
		require.NoError(t, os.WriteFile(filepath.Join(tree, "bin", name), []byte(writesItsConfig), 0o700))
	}
	_, err := in(tree, gitEnv(), "git", "init", "-q")
	require.NoError(t, err)
	_, err = in(tree, gitEnv(), "git", "commit", "-q", "--allow-empty", "-m", "a tree")
	require.NoError(t, err)

	for only, want := range map[string]string{
		"":            "linux, darwin, windows / amd64, arm64",
		"linux/arm64": "linux / arm64",
	} {
		into := filepath.Join(t.TempDir(), "dist")
		command := []string{"tools/distribute", "--into", into}
		if only != "" {
			command = append(command, "--only", only)
		}
		_, err := in(tree, gitEnv(), command...)
		require.NoError(t, err)
		config, err := os.ReadFile(filepath.Join(into, "config"))
		require.NoError(t, err)
		var targets []string
		for _, m := range regexp.MustCompile(`(?m)^ *go(?:os|arch): \[(.*)\]$`).FindAllStringSubmatch(string(config), -1) {
			targets = append(targets, m[1])
		}
		require.Equal(t, want, strings.Join(targets, " / "))
	}
}
