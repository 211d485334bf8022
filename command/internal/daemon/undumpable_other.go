//go:build !linux

package daemon

// Undumpable does nothing on this system, which has no /proc like that of Linux.
func Undumpable() error { return nil }
