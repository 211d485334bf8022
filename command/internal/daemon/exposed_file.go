package daemon

import (
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// ExposedFiles names the files that accounts other than their owner can read or write. It checks the files with
// secrets, such as keys and the files that references name, the configuration itself, and the files that decide whom
// the program trusts or what it runs.
func (c Config) ExposedFiles() []string {
	var problems []string
	for _, e := range c.exposedFiles() {
		problems = append(problems, e.problem+": "+e.fix)
	}
	return problems
}

func (c Config) exposedFiles() []exposure {
	files := namedFiles{secret: slices.Clone(c.secretFiles), trusted: slices.Clone(c.trustedFiles)}
	files.addTrusted(c.file)
	files.addDatabase(c.Database)
	for _, p := range c.Processes {
		files.addSink(p.Sink)
	}
	var all []exposure
	for _, path := range files.all() {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		mode := info.Mode().Perm()
		if slices.Contains(files.secret, path) && mode&(groupRead|othersRead) != 0 {
			all = append(all, exposure{"", fmt.Sprintf("the file %s holds secrets, and others than its owner can read it (mode %#o)", path, mode),
				"chmod 600 " + visible.Shell(path) + ", or defaultMode: 0400 for a volume of Kubernetes"})
		}
		if mode&(groupWrite|othersWrite) != 0 {
			all = append(all, exposure{"", fmt.Sprintf("others than its owner can write the file %s (mode %#o): they choose what is run, and where records and secrets go", path, mode),
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
