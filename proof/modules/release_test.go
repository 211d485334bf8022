package modules_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root = "../.."
	ours = "github.com/ordered-dispatcher/ordered-dispatcher"
)

// release is what a user can download: all modules of this tree, in one version.
type release struct {
	tree    string // a copy of this tree, released
	proxy   string
	version string
	tags    []string
}

// released makes the release once for all tests of this run.
var released = sync.OnceValues(newRelease)

var temporary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if temporary, err = os.MkdirTemp("", "ordered-dispatcher-modules-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(temporary)
	return m.Run()
}

func newRelease() (*release, error) {
	r := &release{
		tree:    filepath.Join(temporary, "tree"),
		proxy:   filepath.Join(temporary, "proxy"),
		version: fmt.Sprintf("v0.0.1-test.%d", time.Now().UnixNano()),
	}
	if err := copyTree(r.tree); err != nil {
		return nil, err
	}
	for _, command := range [][]string{
		{"git", "init", "-q"},
		{"git", "add", "-A"},
		{"git", "commit", "-q", "-m", "the tree"},
		{"tools/release", r.version, "--tag"},
	} {
		if _, err := in(r.tree, gitEnv(), command...); err != nil {
			return nil, err
		}
	}
	tags, err := in(r.tree, nil, "git", "tag")
	if err != nil {
		return nil, err
	}
	r.tags = strings.Fields(tags)
	for _, tag := range r.tags {
		if err := r.publish(tag); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// copyTree copies what git would commit of this tree, with changes that are not committed.
func copyTree(to string) error {
	files, err := in(root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// publish puts the module of a tag into the proxy, as the public module proxy would.
func (r *release) publish(tag string) error {
	dir := strings.TrimSuffix(path.Dir(tag), ".")
	m := module.Version{Path: path.Join(ours, dir), Version: path.Base(tag)}
	versions := filepath.Join(r.proxy, m.Path, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	goMod, err := in(r.tree, nil, "git", "show", tag+":"+path.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.CreateFromVCS(&archive, m, r.tree, tag, dir); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":              m.Version + "\n",
		m.Version + ".info": fmt.Sprintf(`{"Version": %q, "Time": "2026-01-01T00:00:00Z"}`, m.Version),
		m.Version + ".mod":  goMod,
		m.Version + ".zip":  archive.String(),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func gitEnv() []string {
	return []string{"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull}
}

// in runs a command in a directory and returns its standard output.
func in(dir string, env []string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// get returns the release. Its version leaves the module cache of this machine when the test ends.
func get(t *testing.T) *release {
	t.Helper()
	r, err := released()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.forget()) })
	return r
}

func (r *release) forget() error {
	out, err := in(root, nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	cache := strings.TrimSpace(out)
	for _, tag := range r.tags {
		dir := path.Join(ours, strings.TrimSuffix(path.Dir(tag), "."))
		download := filepath.Join(cache, "cache", "download", dir, "@v")
		files, err := filepath.Glob(filepath.Join(download, r.version+".*"))
		if err != nil {
			return err
		}
		for _, file := range append(files, filepath.Join(cache, dir+"@"+r.version), filepath.Join(download, "list")) {
			if err := os.RemoveAll(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// user is a module of someone else.
type user struct {
	dir string
	env []string
}

// newUser makes a module with the files of a directory.
func (r *release) newUser(t *testing.T, from string) user {
	t.Helper()
	u := user{dir: t.TempDir()}
	require.NoError(t, os.CopyFS(u.dir, os.DirFS(from)))
	usual, err := in(root, nil, "go", "env", "GOPROXY", "GOMODCACHE")
	require.NoError(t, err)
	fields := strings.Fields(usual)
	u.env = []string{
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw",
		"GOTOOLCHAIN=local",
		"GOPROXY=file://" + r.proxy + ",file://" + filepath.Join(fields[1], "cache", "download") + "," + fields[0],
		"GOPRIVATE=", "GONOPROXY=none", "GOSUMDB=off", // what this tree requires, its go.sum has checked
		"GOBIN=" + filepath.Join(u.dir, "bin"),
	}
	return u
}

func (u user) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := in(u.dir, u.env, append([]string{"go"}, arguments...)...)
	require.NoError(t, err)
	return out
}

// modules are those that the user's module takes over, with their versions.
func (u user) modules(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(u.run(t, "list", "-m", "all")) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = version
	}
	return all
}

// linked are the modules of a built program.
func (u user) linked(t *testing.T, program string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(u.run(t, "version", "-m", program)) {
		if fields := strings.Fields(line); slices.Contains([]string{"dep", "mod"}, fields[0]) {
			all = append(all, fields[1])
		}
	}
	return all
}
