//go:build unix && !linux

package main

import (
	"fmt"
	"runtime"
	"syscall"
)

// peakMemory returns the most memory that this process has had at once, in bytes: getrusage(2), which macOS counts in
// bytes and the BSDs in kilobytes.
func peakMemory() (int64, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read the peak memory: %w", err)
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss), nil
	}
	return int64(usage.Maxrss) << 10, nil
}
