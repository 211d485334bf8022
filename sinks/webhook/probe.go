package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// probe returns the address at which to ask for a record; its zero value means not to ask.
func (c Config) probe() (target, error) {
	if c.Probe == "" {
		return target{}, nil
	}
	path, ok := strings.CutPrefix(c.Probe, "GET ")
	if path = strings.TrimLeft(path, " "); !ok || !strings.HasPrefix(path, "/") {
		return target{}, errors.New(`is not of the form "GET /path?query", which is asked for at the url's host`)
	}
	if !strings.Contains(path, "{{") {
		return target{}, errors.New("is the same for all records: name the record with {{.DedupKey}}")
	}
	at, _ := cutOrigin(c.URL)
	if _, err := parseURL(at); err != nil {
		return target{}, nil // reported as a fault of url
	}
	return parseTarget(at + path)
}

// ask finds out whether the receiver has a record whose outcome an earlier call has left unknown. An error leaves it
// unknown.
func (s *Sink) ask(ctx context.Context, d processor.Delivery) (found bool, err error) {
	url, err := s.probe.of(d)
	if err != nil {
		return false, err
	}
	req := s.template.Clone(ctx)
	req.Method, req.URL = http.MethodGet, url
	req.Header.Del("Content-Type")
	req.Header.Del("Ce-Specversion")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	err = s.exchange(ctx, req, nil, func(resp *http.Response) error {
		found, err = s.answered(d, resp)
		return err
	})
	if none := new(noAnswer); errors.As(err, &none) {
		err = s.clean(d, none)
	}
	if err != nil {
		return false, outcome.Unknown(fmt.Errorf("ask %s for the record, which it may have already: %w", s.origin, err))
	}
	return found, nil
}

// answered decides the meaning of an answer to a probe.
func (s *Sink) answered(d processor.Delivery, resp *http.Response) (found bool, err error) {
	switch status := resp.StatusCode; {
	case status >= 200 && status <= 299:
		discard(resp)
		return true, nil
	case status == http.StatusNotFound || status == http.StatusGone:
		discard(resp)
		return false, nil
	default:
		if s.probe.isRefusal(status) {
			return false, processor.Refused(fmt.Errorf("answered %d%s%s%s", status, reason(status), s.excerpt(d, s.body(resp)), nextStep(status)))
		}
		err = fmt.Errorf("answered %d%s%s; the sink asks again, since only 2xx means yes, and 404 and 410 mean no", status, reason(status), s.excerpt(d, s.body(resp)))
		return false, processor.RetryAfter(err, retryAfter(resp.Header, time.Now()))
	}
}
