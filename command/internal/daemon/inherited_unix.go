//go:build unix

package daemon

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// CloseOnExec marks every descriptor above 2 with which this process was started, so that none of its children gets
// it. A configuration with secrets may be one of them (-c /dev/fd/3). Go marks the descriptors that it opens itself.
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
