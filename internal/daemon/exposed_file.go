package daemon

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// ExposedFiles says which files with secrets others than their owner can read: those
// that references name, and the configuration if secrets stand in it literally.
func (c Config) ExposedFiles() []string {
	var problems []string
	for _, e := range c.exposedFiles() {
		problems = append(problems, e.problem+": "+e.cure)
	}
	return problems
}

func (c Config) exposedFiles() []exposure {
	var all []exposure
	for _, path := range c.secretFiles {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&(othersRead|groupRead) == 0 {
			continue
		}
		all = append(all, exposure{"", fmt.Sprintf("the file %s holds secrets, and others than its owner can read it (mode %#o)", path, info.Mode().Perm()),
			"chmod 600 " + visible.Shell(path)})
	}
	return all
}

const (
	groupRead  fs.FileMode = 0o040
	othersRead fs.FileMode = 0o004
)
