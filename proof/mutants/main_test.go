package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func TestTable_FollowsTheCode(t *testing.T) {
	t.Parallel()
	p := newProgram(root)
	seen := map[string]bool{}
	var lost []error
	for _, m := range table {
		_, err := m.apply(p)
		lost = append(lost, err)
		require.False(t, seen[m.protection], "twice: %s", m.protection)
		seen[m.protection] = true
	}
	require.NoError(t, errors.Join(lost...))
}

func TestTable_NamesKillersThatAreThere(t *testing.T) {
	t.Parallel()
	for _, m := range table {
		test, _, _ := strings.Cut(m.test(), "/")
		tests := testsOf(t, m.pkg())
		require.Contains(t, tests, "\nfunc "+test+"(", m.protection)
		// Of what it found, rapid leaves a file behind in the program's own directory.
		body, _, _ := strings.Cut(strings.SplitN(tests, "\nfunc "+test+"(", 2)[1], "\n}\n")
		require.NotContains(t, body, "rapid.", test)
	}
}

// testsOf is the text of a package's tests.
func testsOf(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

func TestTable_StandsInTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/reliability.md"))
	require.NoError(t, err)
	for line := range strings.Lines(markdown(table)) {
		require.True(t, strings.Contains(string(text), line), "put what `make mutants` prints into docs/reliability.md: it lacks %s", line)
	}
}

func TestAnyOf_MatchesTestsAndSubtests(t *testing.T) {
	t.Parallel()
	require.Equal(t, "^(TestA|TestB)$", anyOf([]string{"TestB", "TestA/x", "TestA"}))
	expression := anyOf([]string{"TestA/x_(y)", "TestB/z"})
	require.Equal(t, `^(TestA|TestB)$/^(x_\(y\)|z)$`, expression)
	require.Regexp(t, regexp.MustCompile(strings.SplitN(expression, "/", 2)[1]), "x_(y)")
}
