package webhook

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// early is a connection whose receiver may answer before it has read the whole request, and close:
// 413 is such an answer. net/http gives a request up at the first write that fails, and does not
// look whether there is an answer. So a write that fails behind others is left to the next read,
// which has the answer, or the reason why there is none.
type early struct {
	net.Conn
	wrote atomic.Bool // something of this request
}

// begin is called before each request. nil does nothing.
func (c *early) begin() {
	if c != nil {
		c.wrote.Store(false)
	}
}

// Write is that of net.Conn, and counts as done when the receiver has closed in the middle.
func (c *early) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && c.wrote.Load() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return len(p), nil
	}
	if err == nil {
		c.wrote.Store(true)
	}
	return n, err
}

// dialEarly has the transport make such connections, of which c keeps the last.
func (c *connection) dialEarly() {
	dial := c.transport.DialContext
	c.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c.wire = &early{Conn: conn}
		return c.wire, nil
	}
}
