package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// in runs a program in a directory, and returns what it prints.
func in(dir string, env []string, name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(arguments, " "), err, &stdout, &stderr)
	}
	return stdout.String() + stderr.String(), nil
}

// needs skips the test if a program is missing. With CI set, it fails.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			require.Empty(t, os.Getenv("CI"), "the test needs %s", program)
			t.Skipf("the test needs %s", program)
		}
	}
}

// tracked are the files that git has of this tree, or would add.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := in(root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	require.NoError(t, err)
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); !errors.Is(err, os.ErrNotExist) {
			files = append(files, name)
		}
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}
