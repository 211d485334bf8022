package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutPackages is the last block of the rooms: its directories hold no package of their own.
const withoutPackages = "Without Go packages:"

// Who looks for the place of something finds each package once in the architecture, and none that is gone.
func TestArchitecture_NamesEachPackage(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	_, rooms, found := strings.Cut(string(text), "\n## Rooms\n")
	require.True(t, found)
	rooms, _, _ = strings.Cut(rooms, "\n## ")
	of, others, found := strings.Cut(rooms, withoutPackages)
	require.True(t, found)
	require.ElementsMatch(t, packages(t, root), listed(of))
	for _, dir := range listed(others) {
		require.DirExists(t, filepath.Join(root, filepath.FromSlash(dir)))
	}
}

// listed returns the first words of the lines in the blocks of code.
func listed(text string) (all []string) {
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			if words := strings.Fields(line); len(words) > 0 {
				all = append(all, words[0])
			}
		}
	}
	return all
}

// packages returns the directories of the tree that hold Go files, those of tests too.
func packages(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if hidden := strings.HasPrefix(entry.Name(), ".") && path != root; hidden || entry.Name() == "testdata" || entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		local, err := filepath.Rel(root, path)
		all = append(all, filepath.ToSlash(local))
		return err
	})
	require.NoError(t, err)
	return all
}
