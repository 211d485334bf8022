//go:build unix

package stdout

import (
	"io"
	"os"
	"syscall"
)

// isClosed reports that an output was closed before the program began. Go then puts the null device in its place,
// open for reading and writing, and everything that is written is lost.
func isClosed(output io.Writer) bool {
	file, ok := output.(*os.File)
	if !ok {
		return false
	}
	is, err := file.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(is, null) {
		return false
	}
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_GETFL, 0)
	return errno == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR
}
