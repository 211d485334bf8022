package webhook

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"
)

// early is a connection whose receiver may answer before it has read the whole request, and close:
// 413 is such an answer. net/http gives a request up at the first write that fails, and does not
// look whether there is an answer. So a write that fails behind others is left to the next read,
// which has the answer, or the reason why there is none.
type early struct {
	net.Conn
	wrote atomic.Bool // something of this request
	cut   atomic.Bool // a write of it has failed
	whole chan bool   // takes, at the end of its writes, whether all of it was written
}

// begin is called before each request, whose context it returns. nil does nothing.
func (c *early) begin(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	c.wrote.Store(false)
	c.cut.Store(false)
	whole := make(chan bool, 1)
	c.whole = whole
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(end httptrace.WroteRequestInfo) {
		// Now, and not later: the alert that ends TLS comes after the request, and may fail. What
		// net/http's buffer still holds here is a small request, which goes out in one write.
		select {
		case whole <- end.Err == nil && !c.cut.Load():
		default:
		}
	}})
}

// wroteAll reports whether the request was written to its end, of which an answer has come and
// been closed: by then net/http has written it, or closes the connection under the write.
func (c *early) wroteAll(patience time.Duration) bool {
	if c == nil {
		return true
	}
	select {
	case whole := <-c.whole:
		return whole
	case <-time.After(patience):
		return false
	}
}

// Write is that of net.Conn, and counts as done when the receiver has closed in the middle.
func (c *early) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && c.wrote.Load() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		c.cut.Store(true)
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
