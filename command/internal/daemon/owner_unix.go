//go:build unix

package daemon

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user id of a file's owner.
func ownerOf(info fs.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// groupOf returns the id of a file's group.
func groupOf(info fs.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Gid), true
}

// isReadOnly reports whether a directory is on a read-only file system.
func isReadOnly(dir string) bool {
	const toWrite = 2
	return syscall.Access(dir, toWrite) == syscall.EROFS
}
