package daemon

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// exposure is a connection over a network on which others could read a password.
type exposure struct{ process, problem, fix string }

// exposures are those of a file. A database is among them unless its connection string says by sslmode what it wants.
func (c Config) exposures(database *pgx.ConnConfig) []exposure {
	var all []exposure
	if host := inTheClear(database); host != "" && !given(c.Database, "sslmode", "PGSSLMODE") {
		all = append(all, exposure{"", fmt.Sprintf("the connection to %s may be unencrypted, so that the password and the records could be read on the way", host),
			"set sslmode=verify-full in the connection string, or say by another sslmode that this is meant"})
	}
	for _, p := range c.Processes {
		host, what := "", ""
		switch sink := p.Sink.(type) {
		case ExecSink:
			if len(sink.Config.Secrets) > 0 {
				all = append(all, exposure{p.Name, "an argument of command is a reference, and every user of this machine sees arguments in its list of processes", "give it to the child in env"})
			}
		case RemoteSQLSink:
			all = append(all, sink.exposures(p.Name)...)
		case WebhookSink:
			secret := sink.Config.Bearer != "" || sink.Config.Basic != (webhook.Basic{}) || secretHeader(sink.Config.Headers) || sink.secretURL
			host, what = plainURL(sink.Config.URL, nil, secret, "http"), "https"
		case RabbitMQSink:
			host, what = plainURL(sink.Config.URL, sink.Config.TLS, false, "amqp"), "amqps"
		case NATSSink:
			secret := sink.Config.Password != "" || sink.Config.Token != ""
			host, what = plainURL(sink.Config.URL, sink.Config.TLS, secret, "nats", "ws", ""), "tls"
		case KafkaSink:
			host, what = plainBroker(sink.Config), "tls: {}"
		}
		if host != "" {
			all = append(all, exposure{p.Name, "credentials are sent to " + host + " in the clear, and could be read on the way", "use " + what})
		}
	}
	return all
}

// exposures are those of the connection to the target.
func (s RemoteSQLSink) exposures(process string) []exposure {
	const next = "set sslmode=verify-full and sslrootcert in url"
	c, err := pgurl.ParseAlone(s.Config.URL)
	if err != nil {
		return nil // refused elsewhere
	}
	if host := inTheClear(c); host != "" {
		return []exposure{{process, fmt.Sprintf("the connection to %s may be unencrypted, so that the password and the records could be read on the way", host), next}}
	}
	if host := unverified(c); host != "" {
		return []exposure{{process, fmt.Sprintf("the certificate of %s is not checked, so that another could take its place and the password", host), next}}
	}
	return nil
}

// warn says so at each start.
func (e exposure) warn(log *slog.Logger) {
	args := []any{"fix", e.fix}
	if e.process != "" {
		args = append(args, "process", e.process)
	}
	log.Warn(e.problem, args...)
}

// inTheClear is a host over a network to which a connection may be without TLS; "" if there is none.
func inTheClear(c *pgx.ConnConfig) string {
	return hostWhere(c, func(t *tls.Config) bool { return t == nil })
}

// unverified is a host over a network whose certificate is not checked; "" if there is none.
func unverified(c *pgx.ConnConfig) string {
	return hostWhere(c, func(t *tls.Config) bool {
		return t != nil && t.InsecureSkipVerify && t.VerifyPeerCertificate == nil && t.VerifyConnection == nil
	})
}

func hostWhere(c *pgx.ConnConfig, bad func(*tls.Config) bool) string {
	hosts := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	for _, h := range hosts {
		if !isLocal(h.Host) && bad(h.TLSConfig) {
			return h.Host
		}
	}
	return ""
}

// plainURL is the host of a URL to which credentials go without TLS: those of the URL itself, or others.
func plainURL(text string, secured *tls.Config, secret bool, schemes ...string) string {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err == nil && secured == nil && slices.Contains(schemes, u.Scheme) && (secret || u.User != nil) && !isLocal(u.Hostname()) {
			return u.Hostname()
		}
	}
	return ""
}

// secretHeader reports whether one of the headers is named as those that hold secrets are.
func secretHeader(headers map[string]string) bool {
	for name := range headers {
		name = strings.ToLower(name)
		if slices.ContainsFunc([]string{"auth", "key", "token", "cookie", "secret", "pass", "pwd", "signature"}, func(part string) bool { return strings.Contains(name, part) }) {
			return true
		}
	}
	return false
}

// plainBroker is the first broker of Kafka over a network to which a password goes without TLS.
func plainBroker(c kafka.Config) string {
	if c.TLS != nil || c.SASL.Mechanism != "PLAIN" {
		return ""
	}
	for _, broker := range c.Brokers {
		host, _, err := net.SplitHostPort(broker)
		if err != nil {
			host = broker
		}
		if !isLocal(host) {
			return host
		}
	}
	return ""
}
