package kafka

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"
)

// dialTimeout bounds one connection to one address.
const dialTimeout = 10 * time.Second

// dialer makes the connections of a link, and sees the requests that the client writes to them. The client writes a
// request in one piece.
func (s *Sink) dialer(w *written) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := s.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && s.config.TLS != nil {
			conn, err = secured(ctx, conn, s.config.TLS, address)
		}
		if err != nil && !slices.Contains(s.config.Brokers, address) {
			err = &named{err}
		}
		if err != nil {
			w.undialed(err, s.config.patience())
			return nil, err
		}
		return &watched{conn, w, w.ended.Load()}, nil
	}
}

// secured returns conn with TLS for the host of an address.
func secured(ctx context.Context, conn net.Conn, config *tls.Config, address string) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return client, nil
}

// watched is a connection that takes note of its requests.
type watched struct {
	net.Conn
	written *written
	later   bool // it was made after another connection of its link was closed
}

// Close closes the connection. The client calls it.
func (c *watched) Close() error {
	c.written.ended.Store(true)
	return c.Conn.Close()
}

// Write does not write to a connection that the other side has ended. The client reads a connection only while it
// waits for an answer, so it does not know of the end, and a request that was written there may have arrived. After
// the error the client makes another connection.
func (c *watched) Write(request []byte) (int, error) {
	if hasLeft(c.Conn) {
		return 0, net.ErrClosed
	}
	back, ok := c.written.note(c, request) // before: a call may end, and ask what was sent, while it is written
	if !ok {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(request)
	if n == 0 {
		back()
	}
	return n, err
}
