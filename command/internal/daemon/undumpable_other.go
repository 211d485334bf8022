//go:build !linux

package daemon

// Undumpable does nothing where there is no /proc as on Linux.
func Undumpable() error { return nil }
