//go:build !unix

package daemon

import "io/fs"

// On this system a file's owner is not a number.

func ownerOf(fs.FileInfo) (int, bool) { return 0, false }

func groupOf(fs.FileInfo) (int, bool) { return 0, false }

func isReadOnly(string) bool { return false }
