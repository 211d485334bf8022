package throwaway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Dir is a temporary directory and the programs that run in it. It is safe for concurrent use.
type Dir struct {
	path      string
	user      *account
	guard     *guard
	closeOnce sync.Once
	closeErr  error
}

// open keeps every Dir reachable until it is closed. If a Dir were collected, its pipe would close, and the guard
// would end a server that is still in use (TestDir_OutlivesGarbageCollection).
var open sync.Map

// New makes a directory that the unprivileged user can reach, in TMPDIR if possible, else in /tmp or /var/tmp. ctx
// bounds only the making. The directory stays until Close or until this process ends.
func New(ctx context.Context) (*Dir, error) {
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	return newAs(ctx, user)
}

// NewOwn is New for programs that may do what this process may do. They run as its user, even if that is root, and no
// other account can read the content of the directory.
func NewOwn(ctx context.Context) (*Dir, error) { return newAs(ctx, nil) }

func newAs(ctx context.Context, user *account) (*Dir, error) {
	path, err := makeTemp(ctx, user)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, user: user}
	if d.guard, err = d.startGuard(); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	open.Store(d, nil)
	return d, nil
}

// makeTemp lets the user itself make the directory. That the user can do so proves that it can pass every parent. And
// the guard, which runs as that user, can remove what the user owns.
func makeTemp(ctx context.Context, user *account) (string, error) {
	bases := slices.Compact([]string{os.TempDir(), "/tmp", "/var/tmp"})
	var failures []error
	for _, base := range bases {
		cmd := exec.CommandContext(ctx, "sh", "-c",
			`umask 077 && d=$(mktemp -d "$1/throwaway-XXXXXXXX") && mkdir "$d/pids" && echo "$d"`, "sh", base)
		cmd.Dir, cmd.Env = "/", environ("/")
		user.apply(cmd)
		out, err := output(cmd)
		if path := filepath.Clean(strings.TrimSpace(out)); err == nil {
			return path, checkPath(base, path)
		}
		failures = append(failures, err)
	}
	return "", fmt.Errorf("make a temporary directory as %s: %w; set TMPDIR to one that this user may write to",
		user, errors.Join(failures...))
}

// Path returns the absolute path of an element in the directory.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Command prepares a program to run as the unprivileged user, in the directory, with an environment of few variables.
// When ctx ends, the program is killed.
func (d *Dir) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = d.path
	cmd.Env = environ(d.path)
	cmd.WaitDelay = 5 * time.Second
	d.user.apply(cmd)
	return cmd
}

// passed are the variables that programs get from this process. Any other may hold a secret, which the account could
// read in /proc. Or it may change a PostgreSQL program's behaviour without our knowledge, as PGDATA does.
var passed = []string{"PATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "JAVA_HOME", "GOCOVERDIR", "GOMAXPROCS"}

func environ(home string) []string {
	env := []string{"LC_ALL=C", "HOME=" + home}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Run runs a program to its end and returns its output. An error contains the output, too.
func (d *Dir) Run(ctx context.Context, name string, args ...string) (string, error) {
	return output(d.Command(ctx, name, args...))
}

func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s: %w: %s", cmd.Path, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Close ends the programs that still run, at once, and removes the directory. A second call returns the answer of the
// first. If ctx ends first, the guard goes on by itself.
func (d *Dir) Close(ctx context.Context) error {
	d.closeOnce.Do(func() {
		open.Delete(d)
		d.closeErr = d.close(ctx)
	})
	return d.closeErr
}

func (d *Dir) close(ctx context.Context) error {
	if err := d.guard.release(ctx); err != nil {
		return fmt.Errorf("remove %s: %w", d.path, err)
	}
	// The guard emptied it. In a TMPDIR to which only root may write, the last rmdir is left to us, and no more than
	// that.
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a temporary directory: %w; remove it by hand", err)
	}
	return nil
}
