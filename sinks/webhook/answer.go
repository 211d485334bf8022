package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	// maxBody and bodyTimeout bound how much of an answer's body is read, to reuse the connection and to inform the
	// operator. By then the status has decided.
	maxBody     = 8 << 10
	bodyTimeout = 250 * time.Millisecond
)

// judge decides the meaning of an answer.
func (s *Sink) judge(d processor.Delivery, resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		discard(resp)
		return nil
	}
	body := s.body(resp)
	err := fmt.Errorf("post to %s: answered %d%s", s.origin, resp.StatusCode, reason(resp.StatusCode))
	if why := s.contract(d, resp); why != "" { // the body has the same again
		return processor.Refused(fmt.Errorf("%w; %s", err, why))
	}
	err = fmt.Errorf("%w%s", err, s.excerpt(d, body))
	switch plain := s.isPlain(resp); {
	case plain && wantsTLS(body):
		return processor.Refused(fmt.Errorf("%w; the port expects TLS: set url to https://", err))
	case plain:
		return processor.Permanent(fmt.Errorf("%w; if the port expects TLS, set url to https://", err))
	}
	switch {
	case s.to.isRefusal(resp.StatusCode):
		return processor.Refused(fmt.Errorf("%w%s", err, nextStep(resp.StatusCode)))
	case !isTransient(resp.StatusCode):
		return processor.Permanent(fmt.Errorf("%w%s", err, nextStep(resp.StatusCode)))
	}
	if isGateways(resp.StatusCode) {
		err = outcome.Unknown(fmt.Errorf("%w; the receiver behind it may have the record", err))
	}
	if resp.StatusCode == http.StatusTooManyRequests { // about us: each record meets it, and waiting helps
		err = processor.Unreached(err)
	}
	if delay := retryAfter(resp.Header, time.Now()); delay > 0 {
		return processor.RetryAfter(err, delay)
	}
	return err
}

// discard reads the rest of a body, only so that the connection can be reused.
func discard(resp *http.Response) {
	if resp.Body != http.NoBody {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	}
}

// isGateways reports the status of a gateway that passed the request on, or tried to, and has no answer to pass back:
// RFC 9110 sections 15.6.3, 15.6.5.
func isGateways(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

// isRefusal reports a status that is about us, and not about the record: our credentials, our account, or the
// address. Every request meets it. If part of the record is in the address, a missing address may be the record's
// fault.
func (t target) isRefusal(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired:
		return true
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return t.template == nil
	default:
		return status < 400
	}
}

func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500 && status <= 599
	}
}

// reason returns our own text for a status. The receiver's text may hold anything.
func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return " " + text
	}
	return ""
}

// nextStep returns the correction to make, as the end of a message.
func nextStep(status int) string {
	switch {
	case status < 200:
		return "; this sink speaks HTTP/1.1 alone: set url to an endpoint that takes POST"
	case status < 400:
		return "; redirects are not followed: set url to where the receiver is"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "; correct the credentials or the secret"
	case status == http.StatusPaymentRequired:
		return "; check the account at the receiver"
	case status == http.StatusProxyAuthRequired:
		return "; a proxy is in between, and this sink cannot log in to a proxy: set url to the receiver itself"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return "; check that url names an endpoint that takes POST"
	default:
		return "" // retry, or skip: the program that shows a halt prints that
	}
}

// isPlain reports whether an answer may come from a port that expects TLS and got a request without it.
func (s *Sink) isPlain(resp *http.Response) bool {
	return s.to.base.Scheme == "http" && resp.StatusCode == http.StatusBadRequest
}

// wantsTLS reports whether a body is the one that net/http or nginx sends for a request without TLS. It must match
// from its first byte, so that a record which a receiver repeats cannot be mistaken for it.
func wantsTLS(body []byte) bool {
	text := strings.TrimSpace(string(body))
	return text == "Client sent an HTTP request to an HTTPS server." ||
		strings.HasPrefix(text, "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title>")
}

// body returns the part of an answer's body that is to be read.
func (s *Sink) body(resp *http.Response) []byte {
	if resp.StatusCode < 200 {
		return nil // 101: after it comes another protocol, perhaps never
	}
	if s.hides && !s.isPlain(resp) {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // the part that came counts, however it ended
	return body
}

// excerpt returns the part of the answer's body that the operator may see.
func (s *Sink) excerpt(d processor.Delivery, body []byte) string {
	if s.hides {
		return ""
	}
	if text := s.quote(d, string(body), maxExcerpt); text != "" {
		return ": " + text
	}
	return ""
}

// quote returns the part of a receiver's words that may be shown: without our secrets, and without the record, which
// the receiver may have sent back.
func (s *Sink) quote(d processor.Delivery, text string, limit int) string {
	return visible.Start(visible.Line(s.secrets.set.Quote(text, d.Redact)), limit)
}

// retryAfter returns the delay that the receiver asked for, or 0: RFC 9110 section 10.2.3. A date counts from the
// receiver's own clock, if the receiver sent that.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}

// maxRetryAfter keeps sums of times within a time.Duration. The processor decides how long is too long.
const maxRetryAfter = 365 * 24 * time.Hour
