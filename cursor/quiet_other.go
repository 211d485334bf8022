//go:build !unix

package cursor

import "net"

// quiet would report that a connection has nothing to read. Here only a ping
// tells.
func quiet(net.Conn) bool { return true }
