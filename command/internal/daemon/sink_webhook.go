package daemon

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const webhookKind = "webhook"

// WebhookSink sends to a URL.
type WebhookSink struct {
	oneAtATime
	Config webhook.Config
	// secretURL says that a reference is in the path or the query of the URL, or of the probe.
	secretURL bool
}

func parseWebhook(n yamlfile.Node) Sink {
	var c webhook.Config
	secretURL := false
	m := n.Mapping("url", "timeout", "secret", "format", "headers", "bearer", "basic", "tls", "block_private", "probe", "quote_answers")
	if n, ok := m.Need("url", `url: "https://host/path"`); ok {
		c.URL = n.Secret() // its path may hold a token
		secretURL = refersInPath(c.URL, n.References())
	}
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("secret", func(n yamlfile.Node) { c.Secret = n.Secret() })
	m.Read("format", func(n yamlfile.Node) {
		c.Format = webhook.Format(n.OneOf(string(webhook.CloudEvents), string(webhook.CloudEventsStructured)))
	})
	m.Read("headers", func(n yamlfile.Node) { c.Headers = n.Texts() })
	m.Read("bearer", func(n yamlfile.Node) { c.Bearer = n.Secret() })
	m.Read("basic", func(n yamlfile.Node) { c.Basic = parseBasic(n) })
	m.Read("tls", func(n yamlfile.Node) { c.TLS = parseTLS(n) })
	m.Read("block_private", func(n yamlfile.Node) { c.BlockPrivate = n.OneOf("true", "false") == "true" })
	m.Read("probe", func(n yamlfile.Node) {
		c.Probe = n.Secret()
		secretURL = secretURL || refersInPath(c.Probe, n.References())
	})
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if _, err := webhook.New(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return WebhookSink{Config: c, secretURL: secretURL}
}

// refersInPath reports whether what a reference stood for is in a URL after its host:
// likely a token. A reference may also be the whole URL.
func refersInPath(url string, references []string) bool {
	path := url // of the probe, which has no host
	if _, rest, ok := strings.Cut(url, "://"); ok {
		_, path, _ = strings.Cut(rest, "/")
	}
	return slices.ContainsFunc(references, func(text string) bool { return strings.Contains(path, text) })
}

func parseBasic(n yamlfile.Node) (b webhook.Basic) {
	m := n.Mapping("user", "password")
	if n, ok := m.Need("user", "user: dispatcher"); ok {
		b.User = n.Text()
	}
	if n, ok := m.Need("password", "password: ${PASSWORD}"); ok {
		b.Password = n.Secret()
	}
	return b
}

// Kind is webhook.
func (WebhookSink) Kind() string { return webhookKind }

// settings name of the URL scheme and host only.
func (s WebhookSink) settings() map[string]string {
	return map[string]string{"url": strings.TrimPrefix(s.Config.String(), "webhook to ")}
}

func (s WebhookSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openEach(d, s, func(s WebhookSink) (*webhook.Sink, error) { return webhook.New(s.Config) })
	return dispatch, s.callTimeout(), err
}

const (
	defaultWebhookTime = 10 * time.Second
	callMargin         = 5 * time.Second
)

// callTimeout leaves a webhook the time to end by its own time-out, which says
// more than that of the call: whether the receiver was reached. A probe is a
// request of its own.
func (s WebhookSink) callTimeout() time.Duration {
	timeout := cmp.Or(s.Config.Timeout, defaultWebhookTime)
	if s.Config.Probe != "" {
		timeout *= 2
	}
	return min(timeout+callMargin, maxCallTime)
}
