package webhook

import (
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "webhook", Page: "webhook.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns every fault at once, and quotes nothing that may be secret.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// Settings names scheme and host of the URL.
func (c Config) Settings() map[string]string {
	return map[string]string{"url": strings.TrimPrefix(c.String(), "webhook to ")}
}

// Open makes the sink. A probe is a request of its own, so a call has the time for two requests.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	sink, err := New(c)
	timeout := c.withDefaults().Timeout
	if c.Probe != "" {
		timeout *= 2
	}
	return sinks.Opened{Each: sink, Timeout: sinks.CallTimeout(timeout)}, err
}

// Envelope returns the body of a request for a record, and its type.
func (c Config) Envelope(d processor.Delivery) (body []byte, contentType string) {
	return c.Format.envelope(d)
}

// Exposures finds a receiver to which secrets go without TLS.
func (c Config) Exposures() []sinks.Finding {
	secret := c.Bearer != "" || c.Basic != (Basic{}) || secretHeader(c.Headers) || c.secretInPath(c.URL) || c.secretInPath(c.Probe)
	return sinks.Credentials(plaintext.URL(c.URL, secret, "http"), "https")
}

// secretInPath reports whether the text of a reference appears in a URL after its host, where it is likely to be a
// token. A reference may also be the whole URL.
func (c Config) secretInPath(url string) bool {
	path := url // of the probe, which has no host
	if _, rest, ok := strings.Cut(url, "://"); ok {
		_, path, _ = strings.Cut(rest, "/")
	}
	return slices.ContainsFunc(c.Secrets, func(text string) bool { return strings.Contains(path, text) })
}

// secretHeader reports whether one of the headers has a name that is usual for secrets.
func secretHeader(headers map[string]string) bool {
	for name := range headers {
		name = strings.ToLower(name)
		if slices.ContainsFunc([]string{"auth", "key", "token", "cookie", "secret", "pass", "pwd", "signature"}, func(part string) bool { return strings.Contains(name, part) }) {
			return true
		}
	}
	return false
}
