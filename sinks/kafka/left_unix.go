//go:build unix

package kafka

import (
	"net"
	"syscall"
)

// hasLeft reports whether the other side has ended a connection. It consumes nothing that waits there. Under TLS a
// goodbye of the other side is unread data, and hides the end.
func hasLeft(conn net.Conn) bool {
	if layered, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = layered.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	var n int
	var peekErr error
	err = raw.Control(func(fd uintptr) { // and not Read, which waits for the reader of an answer
		var one [1]byte
		n, _, peekErr = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err != nil || n <= 0 && peekErr != syscall.EAGAIN && peekErr != syscall.EINTR
}
