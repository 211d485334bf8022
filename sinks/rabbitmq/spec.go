package rabbitmq

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "rabbitmq", Page: "rabbitmq.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns all faults at once, and quotes nothing of the URL.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// Settings names the broker and the exchange.
func (c Config) Settings() map[string]string { return map[string]string{"target": c.String()} }

// Open makes the sink.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	sink, err := New(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.WindowTimeout(c.withDefaults().Timeout)}, err
}

// Exposures finds a broker to which the password goes without TLS.
func (c Config) Exposures() []sinks.Finding {
	if c.TLS != nil {
		return nil
	}
	return sinks.Credentials(plaintext.URL(c.URL, false, "amqp"), "amqps")
}
