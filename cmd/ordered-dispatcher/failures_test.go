package main_test

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

// Each row of the page names tests that there are, or says why there is none.
func TestFailures_AreProvedByTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/failures.md")
	require.NoError(t, err)
	tests, kinds := testNames(t, "../.."), append(history.Kinds(), history.CellKinds()...)
	name, fault := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`"), regexp.MustCompile(`\*([^*]+)\*`)
	rows := regexp.MustCompile(`(?m)^\| ([A-Z]\d+[a-z]?) \|(.*)\|$`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 80)
	numbers := map[string]bool{}
	for _, row := range rows {
		require.NotContains(t, numbers, row[1])
		numbers[row[1]] = true
		cells := strings.Split(row[2], " | ")
		require.Len(t, cells, 4, row[1])
		proof := cells[3]
		proofs := 0
		for _, m := range name.FindAllStringSubmatch(proof, -1) {
			require.Contains(t, tests, m[1], row[1])
			proofs++
		}
		for _, m := range fault.FindAllStringSubmatch(proof, -1) {
			require.Contains(t, kinds, history.Kind(m[1]), row[1])
			proofs++
		}
		if proofs == 0 {
			require.Regexp(t, `^ ?none( yet)?: \S+ \S+`, proof, row[1])
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testNames are those of all tests of the module.
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
