package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	// maxBody and bodyTimeout bound what is read of an answer's body, to reuse
	// the connection and to tell the operator. The status has decided by then.
	maxBody     = 8 << 10
	bodyTimeout = 250 * time.Millisecond
)

// judge says what an answer means.
func (s *Sink) judge(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		if resp.Body != http.NoBody { // only for the sake of the connection
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
		}
		return nil
	}
	err := fmt.Errorf("post to %s: answered %d%s%s", s.target, resp.StatusCode, reason(resp.StatusCode), s.excerpt(resp))
	if !isTransient(resp.StatusCode) {
		return processor.Permanent(fmt.Errorf("%w; %s", err, nextStep(resp.StatusCode)))
	}
	if delay := retryAfter(resp.Header, time.Now()); delay > 0 {
		return processor.RetryAfter(err, delay)
	}
	return err
}

func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500 && status <= 599
	}
}

// reason is ours, not the receiver's, which may hold anything.
func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return " " + text
	}
	return ""
}

func nextStep(status int) string {
	switch {
	case status < 400:
		return "redirects are not followed: set url to where the receiver is, then retry"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "correct the credentials or the secret, then retry"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return "check that url names an endpoint that takes POST, then retry"
	default:
		return "retry once the receiver takes the record, or skip it"
	}
}

// excerpt returns what the operator may see of the answer's body.
func (s *Sink) excerpt(resp *http.Response) string {
	if resp.StatusCode < 200 {
		return "" // 101: what follows is another protocol, and may never come
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // what came counts, however it ended
	if text := s.secrets.clean(string(body), maxExcerpt); text != "" {
		return ": " + text
	}
	return ""
}

// retryAfter returns the delay the receiver asked for, or 0: RFC 9110 section
// 10.2.3. A date counts from the receiver's own clock, if it sent that.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, maxRetryAfter)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return max(0, at.Sub(now))
}

// maxRetryAfter keeps seconds within a time.Duration. The processor has the
// say about how long is too long.
const maxRetryAfter = 365 * 24 * 60 * 60

// unanswered says why no answer came, and whether the receiver may have the
// record nevertheless.
func (s *Sink) unanswered(attempt context.Context, connected bool, err error) error {
	if cause := context.Cause(attempt); cause != nil {
		err = cause // whatever the transport makes of it
	} else {
		err = &cleanError{s.secrets.clean(err.Error(), maxErrorText), err}
	}
	if connected {
		return fmt.Errorf("post to %s: the receiver may have the record: %w", s.target, err)
	}
	step := cure(err)
	if isTimeout(err) {
		err = errors.New(err.Error()) // the outcome is known, so it is no time-out to the processor
	}
	return fmt.Errorf("post to %s: nothing was sent: %w%s", s.target, err, step)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// cleanError stands for an error of the transport, which may quote the receiver
// at length.
type cleanError struct {
	text  string
	cause error
}

func (e *cleanError) Error() string { return e.text }

func (e *cleanError) Unwrap() error { return e.cause }

// cure is the next step for what hinders a connection.
func cure(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		lookup    *net.DNSError
	)
	switch {
	case errors.As(err, &authority):
		return "; add the receiver's authority to the system's roots, or name its file in SSL_CERT_FILE"
	case errors.As(err, &name):
		return "; let url name a host of the certificate"
	case errors.As(err, &invalid):
		return "; the receiver's certificate must be replaced"
	case errors.As(err, &record):
		return "; set url to http://, or to the port that speaks TLS"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "; check the host in url"
	default:
		return ""
	}
}
