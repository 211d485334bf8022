package kafka

import (
	"net"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "kafka", Page: "kafka.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns every fault at once, and quotes no secret.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// Settings names the topic and the brokers.
func (c Config) Settings() map[string]string { return map[string]string{"target": c.String()} }

// Open makes the sink.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	sink, err := New(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.CallTimeout(c.withDefaults().Timeout)}, err
}

// Owned returns the transactional id.
func (c Config) Owned(string) (what, fix string) {
	if c.TransactionalID == "" {
		return "", ""
	}
	return "transactional_id " + c.TransactionalID + " at " + strings.Join(c.Brokers, ","),
		"give each process a transactional_id of its own: Kafka fences the one that asked for it first"
}

// Exposures finds a broker to which the password goes in clear text, without TLS.
func (c Config) Exposures() []sinks.Finding {
	if c.TLS != nil || c.SASL.Mechanism != mechanismPlain {
		return nil
	}
	for _, broker := range c.Brokers {
		host, _, err := net.SplitHostPort(broker)
		if err != nil {
			host = broker
		}
		if !plaintext.IsLocal(host) {
			return sinks.Credentials(host, "tls: {}")
		}
	}
	return nil
}

// Untestable returns why no test can go out with a transactional id: Kafka fences the worker that has it.
func (c Config) Untestable() string {
	if c.TransactionalID == "" {
		return ""
	}
	return "a test would take the transactional_id, and Kafka would fence the worker that has it: to try the brokers, use a copy of the file without it"
}
