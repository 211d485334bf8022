//go:build !unix

package kafka

import "net"

// hasLeft would report whether the other side has ended a connection. Here only a write shows it.
func hasLeft(net.Conn) bool { return false }
