package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// Each entry of the page names tests that exist, or says why there is none.
func TestFailures_AreProvedByTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/failures.md")
	require.NoError(t, err)
	tests, kinds := testNames(t, "../.."), append(history.Kinds(), history.CellKinds()...)
	name, fault := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`"), regexp.MustCompile(`\*([^*]+)\*`)
	head := regexp.MustCompile(`(?m)^\*\*([A-Z]\d+[a-z]*)\.\*\* `)
	entries := head.FindAllStringSubmatchIndex(string(text), -1)
	require.Greater(t, len(entries), 400)
	numbers := map[string]bool{}
	for i, at := range entries {
		number, end := string(text[at[2]:at[3]]), len(text)
		require.NotContains(t, numbers, number)
		numbers[number] = true
		if i+1 < len(entries) {
			end = entries[i+1][0]
		}
		entry, _, _ := strings.Cut(string(text[at[1]:end]), "\n## ")
		for _, part := range []string{"\n- *Then:* ", "\n- *You:* ", "\n- *Proof:* "} {
			require.Equal(t, 1, strings.Count(entry, part), "%s: %q", number, part)
		}
		_, proof, _ := strings.Cut(entry, "\n- *Proof:* ")
		proof = strings.Join(strings.Fields(proof), " ")
		proofs := 0
		for _, m := range name.FindAllStringSubmatch(proof, -1) {
			require.Contains(t, tests, m[1], number)
			proofs++
		}
		for _, m := range fault.FindAllStringSubmatch(proof, -1) {
			require.Contains(t, kinds, history.Kind(m[1]), number)
			proofs++
		}
		if proofs == 0 {
			require.Regexp(t, `^none( yet)?: \S+ \S+`, proof, number)
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testNames are those of all tests of the tree.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	}))
	return names
}
