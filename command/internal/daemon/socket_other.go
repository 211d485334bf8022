//go:build !linux

package daemon

import "syscall"

// controlSocket does nothing on this system: keep-alives are all there is.
func controlSocket(_, _ string, _ syscall.RawConn) error { return nil }
