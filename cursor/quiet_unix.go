//go:build unix

package cursor

import (
	"net"
	"syscall"
)

// quiet reports that a connection is open and has nothing to read. It reads nothing itself. Under TLS, a
// message of the layer below counts as something to read.
func quiet(conn net.Conn) bool {
	if layered, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = layered.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var peekErr error
	// Not raw.Read, which waits for other readers: pgx leaves one in the background when a write is slow.
	// (TestQuiet_DoesNotWaitForAReader)
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, peekErr = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && (peekErr == syscall.EAGAIN || peekErr == syscall.EINTR)
}
