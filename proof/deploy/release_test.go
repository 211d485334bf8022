package deploy

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var temporary string

func TestMain(m *testing.M) {
	var err error
	if temporary, err = os.MkdirTemp("", "ordered-dispatcher-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(temporary)
	os.Exit(code)
}

var errMissing = errors.New("bin/goreleaser and bin/cyclonedx-gomod are missing: run make packaging")

// built makes the release once for all tests: all of .goreleaser.yaml, for Linux on this machine's processor.
var built = sync.OnceValues(func() (string, error) {
	for _, name := range []string{"goreleaser", "cyclonedx-gomod"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return "", errMissing
		}
	}
	dir := filepath.Join(temporary, "dist")
	_, err := in(root, []string{"GOWORK=", "GOFLAGS="}, "tools/distribute", "--into", dir, "--only", "linux/"+runtime.GOARCH)
	return dir, err
})

// dist returns the directory with what goreleaser built.
func dist(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return dir
}

// artifact returns the only file of the release with this ending.
func artifact(t *testing.T, ending string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dist(t), "*"+ending))
	require.NoError(t, err)
	require.Len(t, files, 1, ending)
	return files[0]
}

// program returns the path of the released program.
func program(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dist(t), "ordered-dispatcher_linux_*", "ordered-dispatcher"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return files[0]
}

// version is the one that the name of the archive has.
func version(t *testing.T) string {
	t.Helper()
	name := filepath.Base(artifact(t, "_linux_"+runtime.GOARCH+".tar.gz"))
	return strings.Split(name, "_")[1]
}

var inSource = regexp.MustCompile(`const sourceVersion = "(.+)"`)

// sourceVersion is what a program prints that was built without a version.
func sourceVersion(t *testing.T) string {
	t.Helper()
	found := inSource.FindStringSubmatch(read(t, "command/version.go"))
	require.NotNil(t, found)
	return found[1]
}

// Go stamps nothing in a worktree, or if GOFLAGS says so.
func TestMakeBuild_NamesTheCommitWithoutStamps(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "clone")
	_, err := in(root, nil, "git", "clone", "-q", ".", clone)
	require.NoError(t, err)
	_, err = in(clone, []string{"GOWORK=", "GOFLAGS=-buildvcs=false"}, "make", "build")
	require.NoError(t, err)
	commit, err := in(clone, nil, "git", "rev-parse", "--short=12", "HEAD")
	require.NoError(t, err)
	out, err := in(clone, nil, "bin/ordered-dispatcher", "--version")
	require.NoError(t, err)
	require.Equal(t, sourceVersion(t)+"+"+commit, out)
}

// A snapshot names its commit.
func TestVersion_NamesTheCommit(t *testing.T) {
	t.Parallel()
	commit, err := in(root, nil, "git", "rev-parse", "--short=7", "HEAD")
	require.NoError(t, err)
	tag, err := in(root, nil, "git", "tag", "--points-at", "HEAD", "v*")
	require.NoError(t, err)
	if tag != "" {
		require.Equal(t, strings.TrimSpace(tag), "v"+version(t))
		return
	}
	require.Contains(t, version(t), "-snapshot.g"+strings.TrimSpace(commit))
}
