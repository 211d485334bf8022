package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestSnippets_TheGoOfEachPageIsCompiled: each block of Go is in a Go file of the tree, line by line, and so the compiler
// has seen it. A line "…" of a block stands for others. snippets_code_test.go has the blocks that no other file has.
func TestSnippets_TheGoOfEachPageIsCompiled(t *testing.T) {
	t.Parallel()
	code := trimmed(goFiles(t))
	found := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "receivers/*/README.md", "examples/*/README.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
				found++
				for _, part := range strings.Split(trimmed(block[1]), "\n…\n") {
					require.True(t, strings.Contains(code, part), "%s has Go that no file has: put it into snippets_code_test.go\n%s", page, part)
				}
			}
		}
	}
	require.Greater(t, found, 10)
}

// goFiles are all files of the tree, one after the other.
func goFiles(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	return all.String()
}

// trimmed has no white space at either end of a line, as a block is not as far to the right as the code in a file.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.Lines("\n" + text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
