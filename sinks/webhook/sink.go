package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink posts records to one URL. It implements processor.Sink and is safe for
// concurrent use; deliveries take turns on its one connection.
type Sink struct {
	target    string // scheme and host: all that errors may say of the URL
	timeout   time.Duration
	errTime   error // the cause of an attempt that took longer than timeout
	template  *http.Request
	format    Format
	keys      [][]byte
	secrets   secrets
	transport *http.Transport
	trace     *httptrace.ClientTrace
	connected atomic.Int64 // how often an attempt has got a connection; before that it sends nothing
	began     time.Time    // with its monotonic reading: the clock may be set
	renewed   atomic.Int64 // how long after began the connection was last given up for its age
}

var _ processor.Sink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before. Idle
// connections close by themselves, so there is nothing to close.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure webhook sink: %w", err)
	}
	u, _ := parseURL(c.URL)          // validated
	keys, _ := parseSecret(c.Secret) // validated
	s := &Sink{
		target:    target(c.URL),
		timeout:   c.Timeout,
		errTime:   fmt.Errorf("no answer within %v: %w", c.Timeout, context.DeadlineExceeded),
		template:  newTemplate(c, u),
		format:    c.Format,
		keys:      keys,
		secrets:   newSecrets(c, u),
		transport: newTransport(c.Timeout),
		began:     time.Now(),
	}
	s.trace = &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { s.connected.Add(1) }}
	return s, nil
}

// String names the receiver.
func (s *Sink) String() string { return "webhook to " + s.target }

// GoString is String, so that no verb prints the secrets.
func (s *Sink) GoString() string { return s.String() }

// Deliver posts the record once. nil means that the receiver answered 2xx. An
// error that wraps a time-out leaves the outcome unknown.
func (s *Sink) Deliver(ctx context.Context, d processor.Delivery) error {
	s.renew()
	attempt, end := context.WithCancelCause(ctx)
	defer end(nil)
	deadline := time.Now().Add(s.timeout)
	timer := time.AfterFunc(s.timeout, func() { end(s.errTime) })
	defer timer.Stop()

	connected := s.connected.Load()
	// RoundTrip instead of a Client: no redirects, no cookies, no URL in errors.
	resp, err := s.transport.RoundTrip(s.request(attempt, d))
	if err != nil {
		return s.unanswered(attempt, s.connected.Load() > connected, err)
	}
	defer resp.Body.Close()
	timer.Reset(min(bodyTimeout, time.Until(deadline)))
	return s.judge(resp)
}

// renew gives the connection up from time to time, so that a change of the
// host's address is followed. Between deliveries the connection is idle.
func (s *Sink) renew() {
	last, now := s.renewed.Load(), int64(time.Since(s.began))
	if now-last > int64(connectionAge) && s.renewed.CompareAndSwap(last, now) {
		s.transport.CloseIdleConnections()
	}
}

// newTemplate makes what all requests have in common.
func newTemplate(c Config, u *url.URL) *http.Request {
	header := http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {"ordered-dispatcher"},
	}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	if c.Format == CloudEvents {
		header["Ce-Specversion"] = []string{"1.0"}
	}
	req := &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: header}
	if u.User != nil {
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
	}
	return req
}
