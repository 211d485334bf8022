package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSite_HasEveryDocument: a page of docs or docs/sinks stands in the list of the site, once.
func TestSite_HasEveryDocument(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join(root, "site/pages.mjs"))
	require.NoError(t, err)
	listed := map[string]int{}
	for _, m := range regexp.MustCompile(`\['(docs/[^']+\.md)', '[^']+'\]`).FindAllStringSubmatch(string(list), -1) {
		listed[m[1]]++
	}
	for _, pattern := range []string{"docs/*.md", "docs/sinks/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			local, err := filepath.Rel(root, path)
			require.NoError(t, err)
			require.Equal(t, 1, listed[filepath.ToSlash(local)], "%s: site/pages.mjs has to list it once", local)
		}
	}
}

// TestSite_LockNamesNoRegistry: npm asks the registry that is configured, and packages are held to their digests.
func TestSite_LockNamesNoRegistry(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile(filepath.Join(root, "site/package-lock.json"))
	require.NoError(t, err)
	require.Contains(t, string(lock), `"integrity": "sha512-`)
	require.NotContains(t, string(lock), "://registry")
	require.NotContains(t, string(lock), `"resolved"`)
}
