package webhook

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	masking "github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

var _ sinks.Renderer = (*Sink)(nil)

// signed are the headers that depend on the secret or on the time of the attempt.
var signed = []string{"Webhook-Timestamp", "Webhook-Signature", "Ordered-Signature"}

// Render returns the request for a record, without signatures and without a trace. The whole URL and the headers that
// Config adds are Hidden. Target has the URL, and in it a mask for what may be a secret: see tokens.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	req, body, err := s.request(context.Background(), d)
	if err != nil {
		return sinks.Call{}, err
	}
	call := sinks.Call{Target: req.Method + " " + s.address(req.URL), Headers: map[string]string{}, Body: make([]byte, body.Len()), Hidden: req.URL.String()}
	_, _ = body.Read(call.Body) // a bytes.Reader gives all of it
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		switch value := req.Header.Get(name); {
		case slices.Contains(signed, name):
		case isRefused(name): // Config.Headers cannot set these
			call.Headers[name] = value
		default:
			call.Hidden += "\n" + name + ": " + value
		}
	}
	return call, nil
}

// address returns a URL without its user and without tokens. Scheme and host are not secret: see origin.
func (s *Sink) address(u *url.URL) string {
	return u.Scheme + "://" + u.Host + s.tokens.Replace(u.RequestURI())
}

// tokens are what may be a secret in the path and the query: the texts of references, and of the part that is the same
// for all records the values of the query, and the long parts of the path. A reference that is a whole URL has its
// path among them.
func tokens(c Config, fixed *url.URL) masking.Set {
	known := slices.DeleteFunc(slices.Clone(c.Secrets), func(text string) bool { return strings.Contains(text, "://") })
	for _, values := range fixed.Query() {
		known = append(known, values...)
	}
	for part := range strings.SplitSeq(fixed.EscapedPath(), "/") {
		if len(part) >= minToken {
			known = append(known, part)
		}
	}
	return masking.New(known...)
}
