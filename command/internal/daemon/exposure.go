package daemon

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// exposure is a connection over a network on which others could read a password.
type exposure struct{ process, problem, fix string }

// exposures returns the exposed connections of a file. The database is among them unless its connection string sets
// sslmode.
func (c Config) exposures(database *pgx.ConnConfig) []exposure {
	var all []exposure
	if host := plaintext.Postgres(database); host != "" && !given(c.Database, "sslmode", "PGSSLMODE") {
		all = append(all, exposure{"", fmt.Sprintf("the connection to %s may be unencrypted, so others on the network could read the password and the records", host),
			"set sslmode=verify-full in the connection string, or another sslmode if you accept this"})
	}
	for _, p := range c.Processes {
		if sink, ok := p.Sink.Config.(sinks.Exposed); ok {
			for _, f := range sink.Exposures() {
				all = append(all, exposure{p.Name, f.Problem, f.Fix})
			}
		}
	}
	return append(all, c.Notify.exposures()...)
}

// warn logs the exposure at each start.
func (e exposure) warn(log *slog.Logger) {
	args := []any{"fix", e.fix}
	if e.process != "" {
		args = append(args, "process", e.process)
	}
	log.Warn(e.problem, args...)
}

// Exposed names what other accounts of this machine could use, as far as it shows without the database: the files that
// accounts other than their owner can read or write, and proxies that any account can stand in for. It checks the files
// with secrets, such as keys and the files that references name, the configuration itself, and the files that decide
// whom the program trusts or what it runs.
func (c Config) Exposed() []string {
	var problems []string
	for _, e := range c.exposed() {
		problems = append(problems, e.problem+": "+e.fix)
	}
	return problems
}

func (c Config) exposed() []exposure { return append(c.exposedFiles(), c.Admin.exposures()...) }

func (c Config) exposedFiles() []exposure {
	files := namedFiles{secret: slices.Clone(c.secretFiles), trusted: slices.Clone(c.trustedFiles)}
	files.addTrusted(c.file)
	files.addDatabase(c.Database)
	for _, p := range c.Processes {
		files.addSink(p.Sink)
	}
	for _, t := range c.Notify.Targets {
		files.addTrusted(t.Files()...)
	}
	var all []exposure
	for _, path := range files.all() {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		mode := info.Mode().Perm()
		if slices.Contains(files.secret, path) && mode&(groupRead|othersRead) != 0 {
			all = append(all, exposure{"", fmt.Sprintf("the file %s holds secrets, and accounts other than its owner can read it (mode %#o)", path, mode),
				"chmod 600 " + visible.Shell(path) + ", or defaultMode: 0400 for a volume of Kubernetes"})
		}
		if mode&(groupWrite|othersWrite) != 0 {
			all = append(all, exposure{"", fmt.Sprintf("accounts other than its owner can write the file %s (mode %#o): they can choose which programs run, and where records and secrets go", path, mode),
				"chmod go-w " + visible.Shell(path)})
		}
		all = append(all, foreign(path)...)
	}
	return all
}

const (
	groupRead   fs.FileMode = 0o040
	groupWrite  fs.FileMode = 0o020
	othersRead  fs.FileMode = 0o004
	othersWrite fs.FileMode = 0o002
)

// namedFiles are the files that a configuration names.
type namedFiles struct {
	secret  []string // their text is a secret
	trusted []string // their text decides what is run, or whom the program trusts
}

func (f *namedFiles) addSecret(paths ...string)  { f.secret = append(f.secret, paths...) }
func (f *namedFiles) addTrusted(paths ...string) { f.trusted = append(f.trusted, paths...) }

// all returns the files, each once.
func (f *namedFiles) all() (all []string) {
	for _, path := range slices.Concat(f.secret, f.trusted) {
		if path != "" && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// addDatabase adds the files of a connection string.
func (f *namedFiles) addDatabase(connection string) {
	if connection == "" {
		return
	}
	secret, trusted := pgurl.FilesByUse(connection)
	f.addSecret(secret...)
	f.addTrusted(trusted...)
}

// addSink adds the files of a sink that neither a reference nor a tls setting names.
func (f *namedFiles) addSink(sink Sink) {
	if filed, ok := sink.Config.(sinks.Filed); ok {
		secret, trusted := filed.Files()
		f.addSecret(secret...)
		f.addTrusted(trusted...)
	}
}

// foreign names the other accounts that decide the content of a file: the owner of the file or of a link to it, and
// all who can put another file in its place.
func foreign(path string) []exposure {
	paths := places(path)
	var all []exposure
	for _, place := range paths {
		info, err := os.Lstat(place)
		if err != nil {
			continue
		}
		if owner, ok := ownerOf(info); ok && owner != 0 && owner != os.Geteuid() {
			all = append(all, exposure{"", fmt.Sprintf("the file %s belongs to another account (user id %d), which is neither root nor the one that runs this: that account can choose which programs run, and where records and secrets go", place, owner),
				fmt.Sprintf("chown -h %d %s", os.Geteuid(), visible.Shell(place))})
		}
	}
	for _, dir := range above(paths) {
		if info, err := os.Stat(dir); err == nil && openToOthers(dir, info) {
			all = append(all, exposure{"", fmt.Sprintf("other accounts can replace the file %s: they can write the directory %s (mode %#o)", path, dir, info.Mode().Perm()),
				"chmod go-w " + visible.Shell(dir)})
		}
	}
	return all
}

// places returns a path and, if it is a link, the path to which the link leads.
func places(path string) []string {
	given, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil || real == given {
		return []string{given}
	}
	return []string{given, real}
}

// above returns all directories that lead to paths, each once.
func above(paths []string) (dirs []string) {
	for _, path := range paths {
		for dir := filepath.Dir(path); !slices.Contains(dirs, dir); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// openToOthers reports whether others can rename the entries of a directory. They cannot if it has the sticky bit, or
// if its file system is read-only, as the volumes of Kubernetes are. The group of the account that asks counts as its
// own.
func openToOthers(dir string, info fs.FileInfo) bool {
	mode := info.Mode()
	if mode&fs.ModeSticky != 0 || isReadOnly(dir) {
		return false
	}
	group, ok := groupOf(info)
	return mode&othersWrite != 0 || mode&groupWrite != 0 && ok && group != 0 && group != os.Getegid()
}
