package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// newTemplate makes the part that all requests have in common.
func newTemplate(c Config, u *url.URL) *http.Request {
	header := http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {"ordered-dispatcher"},
	}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	if authorization := c.authorization(u); authorization != "" {
		header.Set("Authorization", authorization)
	}
	switch c.Format {
	case CloudEvents:
		header["Ce-Specversion"] = []string{"1.0"}
	case CloudEventsStructured:
		header["Content-Type"] = []string{structuredType}
	}
	return &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: header}
}

// maxHead bounds the part of the headers that comes from a record, in bytes before escapes, which make three bytes
// from one. Servers take far less.
const maxHead = 1 << 20

// headSize returns the size that maxHead bounds.
func headSize(d processor.Delivery) int { return len(d.ID) + len(d.Key) + len(d.Type) }

// request makes one attempt, and the reader for its body. Its error is about the record, and permanent.
func (s *Sink) request(ctx context.Context, d processor.Delivery) (*http.Request, *bytes.Reader, error) {
	if size := headSize(d); size > maxHead {
		return nil, nil, processor.Permanent(fmt.Errorf(
			"its key, type and id have %d bytes, and headers may have %d: make the row smaller", size, maxHead))
	}
	url, err := s.to.of(d)
	if err != nil {
		return nil, nil, err
	}
	content, _ := s.format.envelope(d)
	req := *s.template // without a context: exchange gives it one
	req.URL, req.Header = url, s.header(d, content, time.Now())
	// The span of the attempt, if there is one, or else the record's own trace.
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	body := bytes.NewReader(content)
	req.Body, req.ContentLength = io.NopCloser(body), body.Size() // with any other type, headers go out alone before the body
	if body.Size() == 0 {
		req.Body = http.NoBody // else net/http sends a chunk of no bytes, which not all servers read
	}
	return &req, body, nil
}

// capacity returns the largest number of headers that header adds.
func (s *Sink) capacity() int {
	n := wire.Count + 2
	if len(s.keys) > 0 {
		n += 4
	}
	if s.format == CloudEvents {
		n += 4
	}
	return n
}

func (s *Sink) header(d processor.Delivery, body []byte, now time.Time) http.Header {
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
	wire.Each(d, func(name, value string) {
		if name != wire.HeaderContentType { // the format sets that one
			setData(http.CanonicalHeaderKey(name), value)
		}
	})
	if encoding := packed.Encoded(d.Headers); s.format != CloudEventsStructured && !packed.Claimed(d.Headers) {
		setData("Content-Encoding", encoding) // the body is the payload
	}
	if len(s.keys) > 0 {
		set("Webhook-Id", id)
		set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		m := signature.Message{Header: h, Body: body}
		set("Webhook-Signature", s.keys.Standard(m))
		set(http.CanonicalHeaderKey(wire.HeaderSignature), s.keys.Ordered(m))
	}
	if s.format == CloudEvents {
		set("Ce-Id", id)
		setData("Ce-Source", eventSource(d))
		setData("Ce-Type", eventType(d))
		setData("Ce-Time", eventTime(d))
	}
	return h
}
