package daemon

import (
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

func parseSink(n yamlfile.Node) (s Sink) {
	m := n.Mapping(string(SinkWebhook), string(SinkStdout), string(SinkSQL))
	switch names := m.Names(); {
	case !n.Sound():
		return s
	case len(names) == 0:
		n.Fault("there is no sink: write webhook, stdout or sql")
	case len(names) > 1:
		n.Fault("there are several sinks (%s): keep one", strings.Join(names, ", "))
	}
	m.Read(string(SinkWebhook), func(n yamlfile.Node) { s = Sink{Kind: SinkWebhook, Webhook: parseWebhook(n)} })
	m.Read(string(SinkStdout), func(n yamlfile.Node) { s = Sink{Kind: SinkStdout}; n.Nothing() })
	m.Read(string(SinkSQL), func(n yamlfile.Node) { s = Sink{Kind: SinkSQL, SQL: parseSQL(n)} })
	return s
}

func parseWebhook(n yamlfile.Node) (c webhook.Config) {
	m := n.Mapping("url", "timeout", "secret", "format", "headers")
	if n, ok := m.Need("url", `url: "https://host/path"`); ok {
		c.URL = n.Secret() // its path may hold a token
	}
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minWebhookTime, maxWebhookTime) })
	m.Read("secret", func(n yamlfile.Node) { c.Secret = n.Secret() })
	m.Read("format", func(n yamlfile.Node) { c.Format = webhook.Format(n.OneOf(string(webhook.CloudEvents))) })
	m.Read("headers", func(n yamlfile.Node) { c.Headers = n.Texts() })
	if n.Sound() {
		if _, err := webhook.New(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return c
}

func parseSQL(n yamlfile.Node) string {
	m := n.Mapping("statement")
	statement, ok := m.Need("statement", `statement: "INSERT INTO … VALUES (@id, @payload)"`)
	if !ok {
		return ""
	}
	text := statement.Text()
	if n.Sound() {
		if err := checkSQL(text); err != nil {
			statement.Fault("%v", err)
		}
	}
	return text
}
