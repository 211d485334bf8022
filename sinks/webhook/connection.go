package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/net/idna"
)

// connection is the connection to the receiver. It is opened when it is needed, and its users take turns. The pool of
// an http.Transport would send some requests again by itself. It does not report whether it sent one, and takes
// longer for each.
type connection struct {
	transport *http.Transport
	scheme    string
	address   string // host and port

	turn   chan struct{}    // holds one while the fields below are in use
	conn   *http.ClientConn // nil: to be opened
	wire   *early           // what conn writes to; nil before the first
	opened time.Time
	used   time.Time   // when the last turn was given back
	idle   *time.Timer // runs rest, idleTimeout after that
	wanted atomic.Bool // the receiver asked for our certificate, in a way that judges it after our side of the handshake
}

func newConnection(t *http.Transport, u *url.URL) *connection {
	c := &connection{transport: t, scheme: u.Scheme, address: address(u), turn: make(chan struct{}, 1)}
	c.dialEarly()
	c.noteWanted()
	return c
}

// noteWanted notes whether the receiver asks for our certificate, and gives it as crypto/tls does.
func (c *connection) noteWanted() {
	config := c.transport.TLSClientConfig
	given := config.GetClientCertificate
	config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c.wanted.Store(asked.Version >= tls.VersionTLS13)
		if given != nil {
			return given(asked)
		}
		for i := range config.Certificates {
			if asked.SupportsCertificate(&config.Certificates[i]) == nil {
				return &config.Certificates[i], nil
			}
		}
		return new(tls.Certificate), nil
	}
}

// address returns the address to dial for a URL.
func address(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil && !isASCII(host) {
		host = ascii
	}
	if port == "" && u.Scheme == "https" {
		port = "443"
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(host, port)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// take waits for the turn.
func (c *connection) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give ends the turn. The connection is kept if it can be used at once.
func (c *connection) give() {
	if c.conn != nil && c.conn.Available() == 0 {
		c.drop()
	}
	if c.conn != nil {
		c.used = time.Now()
		c.idle.Reset(idleTimeout)
	}
	<-c.turn
}

// send sends a request once, with body as its content. It returns the answer, or why there is none. The caller has
// the turn. Redirects are not followed, and cookies are not kept.
func (c *connection) send(ctx context.Context, req *http.Request, body *bytes.Reader) (*http.Response, *noAnswer) {
	for {
		reused, err := c.open(ctx)
		if err != nil {
			return nil, &noAnswer{err: err}
		}
		resp, err := c.conn.RoundTrip(req.WithContext(c.wire.begin(ctx)))
		if err == nil {
			return resp, nil
		}
		reason := alert(c.conn.Err())
		if reason != nil {
			err = reason // rather than that the connection was closed
		}
		c.drop()
		sent := begun(body) && !c.turnedAway(reused, reason)
		// A connection that was found closed before anything was written is not a failure.
		if sent || !reused || ctx.Err() != nil {
			return nil, &noAnswer{sent: sent, err: err}
		}
	}
}

// turnedAway reports whether the receiver refused our certificate. If it had asked for one, and the connection had no
// request before, then its side of the handshake has failed, and it read nothing of the request.
func (c *connection) turnedAway(reused bool, alert *net.OpError) bool {
	return !reused && c.wanted.Load() && alert != nil &&
		slices.ContainsFunc(ofCertificates, func(code tls.AlertError) bool { return code.Error() == alert.Err.Error() })
}

// open makes sure that there is a connection, and reports whether it was used before.
func (c *connection) open(ctx context.Context) (reused bool, err error) {
	if c.conn != nil && c.conn.Err() == nil && time.Since(c.opened) < connectionAge {
		return true, nil
	}
	c.drop()
	c.wanted.Store(false)
	conn, err := c.transport.NewClientConn(ctx, c.scheme, c.address)
	if err != nil {
		return false, err
	}
	c.conn, c.opened, c.idle = conn, time.Now(), time.AfterFunc(idleTimeout, c.rest)
	return false, nil
}

// rest closes the connection if it was not used for idleTimeout.
func (c *connection) rest() {
	c.turn <- struct{}{}
	if time.Since(c.used) >= idleTimeout {
		c.drop()
	}
	<-c.turn
}

func (c *connection) drop() {
	if c.conn == nil {
		return
	}
	c.idle.Stop()
	_ = c.conn.Close() // an error of a connection that is given up is of no use
	c.conn = nil
}

// begun reports whether net/http has begun to read a request's body. Before that, it writes nothing except headers
// beyond 4 KiB. By the time that it returns an error, it has stopped reading. For a request without a body this is
// not known.
func begun(body *bytes.Reader) bool {
	return body == nil || body.Size() == 0 || body.Len() < int(body.Size())
}
