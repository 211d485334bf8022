package main

import (
	"errors"
	"strconv"
)

// peakMemory returns the most memory that this process has had at once, in bytes: proc_pid_status(5), VmHWM. Unlike
// ru_maxrss it does not begin with what the parent had.
func peakMemory() (int64, error) {
	kilobytes, err := strconv.ParseInt(find("/proc/self/status", `(?m)^VmHWM:\s*(\d+) kB$`), 10, 64)
	if err != nil {
		return 0, errors.New("read the peak memory from /proc/self/status: there is no VmHWM")
	}
	return kilobytes << 10, nil
}
