package webhook

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// request makes one attempt.
func (s *Sink) request(ctx context.Context, d processor.Delivery) *http.Request {
	req := s.template.WithContext(httptrace.WithClientTrace(ctx, s.trace))
	req.Header = s.header(d, time.Now())
	// net/http takes a POST with an Idempotency-Key as one it may send again by
	// itself when a reused connection dies, if it can get the body again: if
	// GetBody is set, or if Body is nil or NoBody. Neither must happen, not even
	// for an empty payload. (TestDeliver_IsSentOnceOnADyingConnection)
	req.Body = io.NopCloser(bytes.NewReader(d.Payload))
	req.ContentLength = int64(len(d.Payload))
	return req
}

// capacity is how many headers header adds at most.
func (s *Sink) capacity() int {
	n := 8
	if len(s.keys) > 0 {
		n += 3
	}
	if s.format == CloudEvents {
		n += 4
	}
	return n
}

func (s *Sink) header(d processor.Delivery, now time.Time) http.Header {
	h := make(http.Header, len(s.template.Header)+s.capacity())
	maps.Copy(h, s.template.Header)
	values := make([]string, 0, s.capacity()) // one array for all headers
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	setData := func(name, value string) {
		if value != "" {
			set(name, escape(value))
		}
	}
	id := identity(d)
	set("Idempotency-Key", id)
	setData("Ordered-Process", d.Process)
	set("Ordered-Sequence", strconv.FormatInt(d.Sequence, 10))
	set("Ordered-Epoch", strconv.FormatInt(int64(d.Epoch), 10))
	set("Ordered-Attempt", strconv.Itoa(d.Attempt))
	setData("Ordered-Position", string(d.Position))
	setData("Ordered-Key", d.Key)
	setData("Ordered-Type", d.Type)
	if len(s.keys) > 0 {
		timestamp := strconv.FormatInt(now.Unix(), 10)
		set("Webhook-Id", id)
		set("Webhook-Timestamp", timestamp)
		set("Webhook-Signature", sign(s.keys, id, timestamp, d.Payload))
	}
	if s.format == CloudEvents {
		set("Ce-Id", id)
		setData("Ce-Source", "/"+url.PathEscape(d.Table))
		setData("Ce-Type", cmp.Or(d.Type, d.Table, "record"))
		if hasRFC3339(d.CreatedAt) {
			set("Ce-Time", d.CreatedAt.UTC().Format(time.RFC3339Nano))
		}
	}
	return h
}

// hasRFC3339: RFC 3339 ends with the year 9999, PostgreSQL does not.
func hasRFC3339(t time.Time) bool {
	year := t.UTC().Year()
	return !t.IsZero() && year >= 0 && year <= 9999
}
