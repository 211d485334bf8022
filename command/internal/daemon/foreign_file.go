package daemon

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

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
			all = append(all, exposure{"", fmt.Sprintf("the file %s belongs to another account (user id %d), which is neither root nor the one that runs this: it chooses what is run, and where records and secrets go", place, owner),
				fmt.Sprintf("chown -h %d %s", os.Geteuid(), visible.Shell(place))})
		}
	}
	for _, dir := range above(paths) {
		if info, err := os.Stat(dir); err == nil && openToOthers(dir, info) {
			all = append(all, exposure{"", fmt.Sprintf("others can put another file in the place of %s: they can write the directory %s (mode %#o)", path, dir, info.Mode().Perm()),
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
