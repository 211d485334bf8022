package pglocal

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// version is a PostgreSQL release: 15.18 is {15, 18}. A beta or release candidate has minor -1: it sorts below.
type version struct{ major, minor int }

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// parseVersion reads what "postgres --version" prints.
func parseVersion(text string) (version, error) {
	match := versionText.FindStringSubmatch(text)
	if match == nil {
		return version{}, fmt.Errorf("read the version of PostgreSQL from %q: unknown form", text)
	}
	major, _ := strconv.Atoi(match[1])
	if match[2] == "" {
		return version{major, -1}, nil
	}
	minor, _ := strconv.Atoi(match[2])
	return version{major, minor}, nil
}

func (v version) compare(w version) int {
	return cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor))
}

func (v version) String() string {
	if v.minor < 0 {
		return strconv.Itoa(v.major)
	}
	return fmt.Sprintf("%d.%d", v.major, v.minor)
}

// installation is a set of PostgreSQL programs. A check has shown that the server's user can run them.
type installation struct {
	binDir  string
	version version
}

func (i installation) program(name string) string { return filepath.Join(i.binDir, name) }

// install finds the programs that the configuration asks for, and fetches them if this machine has none.
func install(ctx context.Context, c Config, dir *throwaway.Dir) (installation, error) {
	if !c.embedded {
		if found, ok := onMachine(ctx, c, dir); ok {
			c.Log.Info(fmt.Sprintf("using PostgreSQL %s from %s", found.version, found.binDir))
			return found, nil
		}
	}
	return fetched(ctx, c, dir)
}

// onMachine picks the highest suitable version on this machine; among equals the first found, and PATH comes first.
func onMachine(ctx context.Context, c Config, dir *throwaway.Dir) (installation, bool) {
	var best installation
	for _, binDir := range BinDirs() {
		if !isFile(filepath.Join(binDir, "postgres")) || !isFile(filepath.Join(binDir, "initdb")) {
			continue
		}
		found, err := inspect(ctx, binDir, dir)
		if err != nil {
			c.Log.Info("passing over a PostgreSQL that does not run", "dir", binDir, "err", err)
			continue
		}
		suits := found.version.major >= oldestMajor && (c.major == 0 || c.major == found.version.major)
		if suits && found.version.compare(best.version) > 0 {
			best = found
		}
	}
	return best, best.binDir != ""
}

// inspect asks postgres for its version, as the user that will run it, because that user may not be able to reach it.
func inspect(ctx context.Context, binDir string, dir *throwaway.Dir) (installation, error) {
	text, err := dir.Run(ctx, filepath.Join(binDir, "postgres"), "--version")
	if err != nil {
		return installation{}, err
	}
	v, err := parseVersion(text)
	return installation{binDir: binDir, version: v}, err
}

// BinDirs lists the directories in which PostgreSQL's programs are usually found, those of PATH first.
func BinDirs() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // PGDG on Red Hat
		"/usr/libexec/postgresql*",                           // Alpine
		"/usr/local/pgsql/bin",                               // built from source
		"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
		"/opt/local/lib/postgresql*/bin",                     // MacPorts
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew on Linux
	} {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		dirs = append(dirs, matches...)
	}
	return dirs
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// LookPath finds a program in PATH, or in the directories where PostgreSQL and daemons are installed. Of several
// PostgreSQL installations it takes the last by name, which is the newest of Debian's.
func LookPath(program string) (string, bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	dirs := slices.Concat([]string{"/usr/sbin", "/usr/local/sbin"}, BinDirs())
	for _, dir := range slices.Backward(dirs) {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, true
		}
	}
	return "", false
}
