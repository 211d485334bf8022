package daemon

import (
	"strings"
	"syscall"
	"time"
)

const (
	tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT of linux/tcp.h, which package syscall lacks
	// unacknowledged is how long sent data may stay unanswered by the server's host. Keep-alives do not cover that,
	// and the kernel's own limit is 15 minutes.
	unacknowledged = 15 * time.Second
)

// controlSocket prepares a socket before it connects.
func controlSocket(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	control := func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unacknowledged.Milliseconds()))
	}
	if controlErr := raw.Control(control); controlErr != nil {
		return controlErr
	}
	return err
}
