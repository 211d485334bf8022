//go:build unix

package daemon

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// CloseOnExec marks every descriptor above 2 that this process was started with, so
// that none of its children has it: a configuration with secrets may be one of them
// (-c /dev/fd/3). What Go opens itself has the mark.
func CloseOnExec() error {
	const standard = 2
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("keep open files from children: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > standard {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
