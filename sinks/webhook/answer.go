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
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	// maxBody and bodyTimeout bound what is read of an answer's body, to reuse
	// the connection and to tell the operator. The status has decided by then.
	maxBody     = 8 << 10
	bodyTimeout = 250 * time.Millisecond
)

// judge says what an answer means.
func (s *Sink) judge(d processor.Delivery, resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		discard(resp)
		return nil
	}
	body := s.body(resp)
	err := fmt.Errorf("post to %s: answered %d%s%s", s.origin, resp.StatusCode, reason(resp.StatusCode), s.excerpt(d, body))
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
	if resp.StatusCode == http.StatusTooManyRequests { // of ours: each record meets it, and waiting helps
		err = processor.Unreached(err)
	}
	if delay := retryAfter(resp.Header, time.Now()); delay > 0 {
		return processor.RetryAfter(err, delay)
	}
	return err
}

// discard reads what there is of a body, only for the sake of the connection.
func discard(resp *http.Response) {
	if resp.Body != http.NoBody {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	}
}

// isGateways reports a status by which a gateway says that it passed the request
// on, or tried to, and has no answer to pass back: RFC 9110 sections 15.6.3, 15.6.5.
func isGateways(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

// isRefusal reports a status that speaks of us, and not of the record: our
// credentials, our account, or the address. Whatever is sent meets it. Where the
// address is made of the record, an address that is not there may be the record's.
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

// reason is ours, not the receiver's, which may hold anything.
func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return " " + text
	}
	return ""
}

// nextStep is what to correct, as the end of a message.
func nextStep(status int) string {
	switch {
	case status < 200:
		return "; this sink speaks HTTP/1.1 alone: set url to an endpoint that takes POST"
	case status < 400:
		return "; redirects are not followed: set url to where the receiver is"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "; correct the credentials or the secret"
	case status == http.StatusPaymentRequired:
		return "; see to the account at the receiver"
	case status == http.StatusProxyAuthRequired:
		return "; a proxy is in between, and this sink logs in to none: set url to the receiver itself"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return "; check that url names an endpoint that takes POST"
	default:
		return "" // retry, or skip: whoever shows a halt says so
	}
}

// isPlain reports whether an answer may be that of a port which expects TLS, to a request without it.
func (s *Sink) isPlain(resp *http.Response) bool {
	return s.to.base.Scheme == "http" && resp.StatusCode == http.StatusBadRequest
}

// wantsTLS reports whether a body is the one that net/http or nginx has for a request without
// TLS. It is theirs from its beginning on, so that no record which a receiver repeats passes for it.
func wantsTLS(body []byte) bool {
	text := strings.TrimSpace(string(body))
	return text == "Client sent an HTTP request to an HTTPS server." ||
		strings.HasPrefix(text, "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title>")
}

// body is what is to be read of an answer.
func (s *Sink) body(resp *http.Response) []byte {
	if resp.StatusCode < 200 {
		return nil // 101: what follows is another protocol, and may never come
	}
	if s.hides && !s.isPlain(resp) {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // what came counts, however it ended
	return body
}

// excerpt returns what the operator may see of the answer's body.
func (s *Sink) excerpt(d processor.Delivery, body []byte) string {
	if s.hides {
		return ""
	}
	if text := s.quote(d, string(body), maxExcerpt); text != "" {
		return ": " + text
	}
	return ""
}

// quote is what may be said of a receiver's words: neither our secrets nor the
// record, which it may have been sent for an answer. What stands in for a letter is
// undone in between, and may have hidden a secret.
func (s *Sink) quote(d processor.Delivery, text string, limit int) string {
	return s.secrets.clean(d.Redact(s.secrets.set.Replace(text)), limit)
}

// retryAfter returns the delay the receiver asked for, or 0: RFC 9110 section
// 10.2.3. A date counts from the receiver's own clock, if it sent that.
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

// maxRetryAfter keeps sums of times within a time.Duration. The processor has the
// say about how long is too long.
const maxRetryAfter = 365 * 24 * time.Hour
