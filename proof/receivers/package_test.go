package receivers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packages are the files that have the version of a receiver, and where it is in them.
var packages = map[string]string{
	"python/pyproject.toml":        `(?m)^version = "(.+)"$`,
	"typescript/package.json":      `(?m)^  "version": "(.+)",$`,
	"typescript/package-lock.json": `(?m)^(?:  |      )"version": "(.+)",\n(?:  "lockfileVersion"|      "license": "Apache-2.0",\n      "dependencies": \{\n        "pg")`,
	"java/pom.xml":                 `(?m)^  <version>(.+)</version>$`,
}

// tools/release writes the version of all modules into the packages, too. Its test is in proof/modules.
func TestReceivers_HaveTheVersionOfTheModules(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(filepath.Join("..", "..", "command", "go.mod"))
	require.NoError(t, err)
	required := regexp.MustCompile(`(?m)^\tgithub\.com/ordered-dispatcher/ordered-dispatcher v(\S+)$`).FindSubmatch(module)
	require.NotNil(t, required)
	for name, pattern := range packages {
		text, err := os.ReadFile(filepath.Join(sources, name))
		require.NoError(t, err)
		found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
		want := 1
		if strings.HasSuffix(name, "-lock.json") {
			want = 2 // of the file, and of the package in it
		}
		require.Len(t, found, want, name)
		for _, version := range found {
			got := string(version[1])
			if name == "python/pyproject.toml" {
				got = strings.Replace(got, ".dev0+", "-", 1)
			}
			require.Equal(t, string(required[1]), got, name)
		}
	}
}

func TestReceivers_HaveTheLicenseOfTheTree(t *testing.T) {
	t.Parallel()
	license, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	require.NoError(t, err)
	for _, language := range []string{"python", "typescript", "java"} {
		text, err := os.ReadFile(filepath.Join(sources, language, "LICENSE"))
		require.NoError(t, err)
		require.Equal(t, string(license), string(text), language)
	}
}
