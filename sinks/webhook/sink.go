package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	masking "github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink posts records to one receiver. It implements processor.Sink and is safe for
// concurrent use; deliveries take turns on its one connection.
type Sink struct {
	origin   string // scheme and host: the only part of the URL in errors
	timeout  time.Duration
	errTime  error // the cause of a request that took longer than timeout
	to       target
	probe    target // its zero value: never ask
	template *http.Request
	format   Format
	keys     signature.Keys
	secrets  secrets
	tokens   masking.Set // of the URL
	hides    bool        // the receiver's words
	receiver *connection
}

var _ processor.Sink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before. Idle connections close by themselves, so there
// is nothing to close.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure webhook sink: %w", err)
	}
	to, _ := parseTarget(c.URL)          // validated
	probe, _ := c.probe()                // validated
	keys, _ := signature.Parse(c.Secret) // validated
	return &Sink{
		origin:   origin(c.URL),
		timeout:  c.Timeout,
		errTime:  fmt.Errorf("no answer within %v: %w", c.Timeout, context.DeadlineExceeded),
		to:       to,
		probe:    probe,
		template: newTemplate(c, to.base),
		format:   c.Format,
		keys:     keys,
		secrets:  newSecrets(c, to.secret, probe.secret),
		tokens:   tokens(c, to.secret),
		hides:    c.HideAnswers,
		receiver: newConnection(newTransport(c), to.base),
	}, nil
}

// String names the receiver.
func (s *Sink) String() string { return "webhook to " + s.origin }

// GoString is String, so that no verb prints the secrets.
func (s *Sink) GoString() string { return s.String() }

// Deliver posts the record once. nil means that the receiver answered 2xx, or that it already has the record, by its
// answer to the probe. An error that is a time-out leaves the outcome unknown.
func (s *Sink) Deliver(ctx context.Context, d processor.Delivery) error {
	if d.Unknown && s.probe.base != nil {
		if found, err := s.ask(ctx, d); found || err != nil {
			return err
		}
	}
	req, body, err := s.request(ctx, d)
	if err != nil {
		return err
	}
	err = s.exchange(ctx, req, body, func(resp *http.Response) error { return s.judge(d, resp) })
	if none := new(noAnswer); errors.As(err, &none) {
		return s.unanswered(d, none)
	}
	return err
}

// exchange sends a request with that body. It returns the result of judge for the answer, or a *noAnswer.
func (s *Sink) exchange(ctx context.Context, req *http.Request, body *bytes.Reader, judge func(*http.Response) error) error {
	attempt, end := context.WithTimeoutCause(ctx, s.timeout, s.errTime)
	defer end()
	if err := s.receiver.take(attempt); err != nil {
		return &noAnswer{cause: err, err: err}
	}
	defer s.receiver.give()
	resp, none := s.receiver.send(attempt, req, body)
	if none != nil {
		none.cause = context.Cause(attempt)
		return none
	}
	if resp.Body != http.NoBody {
		defer resp.Body.Close()
		defer time.AfterFunc(bodyTimeout, end).Stop()
	}
	if err := judge(resp); err != nil || body == nil {
		return err
	}
	_ = resp.Body.Close()
	deadline, _ := attempt.Deadline()
	if !s.receiver.wire.wroteAll(time.Until(deadline)) {
		s.receiver.drop()
		return tooEarly(resp.StatusCode)
	}
	return nil
}
