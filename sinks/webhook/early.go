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

// early is a connection whose receiver may answer, and close, before it has read the whole request: 413 is such an
// answer. net/http gives up a request at the first write that fails, and does not check whether there is an answer.
// So if a write fails after others succeeded, early leaves that to the next read, which has the answer, or the reason
// why there is none.
type early struct {
	net.Conn
	wrote atomic.Bool // part of this request was written
	cut   atomic.Bool // a write of it has failed
	whole chan bool   // takes, at the end of its writes, whether all of it was written
}

// begin is called before each request, whose context it returns. On a nil connection it does nothing.
func (c *early) begin(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	c.wrote.Store(false)
	c.cut.Store(false)
	whole := make(chan bool, 1)
	c.whole = whole
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(end httptrace.WroteRequestInfo) {
		// This has to happen now: the alert that ends TLS comes after the request, and may fail. If net/http's buffer
		// still holds data here, that is a small request, which goes out in one write.
		select {
		case whole <- end.Err == nil && !c.cut.Load():
		default:
		}
	}})
}

// wroteAll reports whether a request was written to its end. Its answer has come and been closed: by then net/http
// has written the request, or closes the connection during the write.
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

// Write is the method of net.Conn. It counts as done when the receiver has closed in the middle.
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

// dialEarly makes the transport open such connections. c keeps the last one.
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
