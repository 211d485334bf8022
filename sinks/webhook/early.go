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
	wrote atomic.Bool // something, since the last read
}

// Write is that of net.Conn, and counts as done when the receiver has closed in the middle.
func (c *early) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && c.wrote.Load() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return len(p), nil
	}
	c.wrote.Store(err == nil)
	return n, err
}

// Read is that of net.Conn.
func (c *early) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.wrote.Store(false)
	}
	return n, err
}

// dialEarly makes such connections.
func dialEarly(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &early{Conn: conn}, nil
	}
}
