package pubsub

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "pubsub", Page: "pubsub.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// Settings names the topic.
func (c Config) Settings() map[string]string { return map[string]string{"target": c.String()} }

// Open makes the sink.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	sink, err := New(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.WindowTimeout(c.withDefaults().Timeout)}, err
}

// checkTimeout bounds a look at the topic: the checks after it need the rest of the time.
const checkTimeout = 5 * time.Second

// Check looks at the topic.
func (c Config) Check(ctx context.Context, _ string, _ sinks.Around) ([]sinks.Finding, error) {
	sink, err := New(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sink.Close() }()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := sink.Check(ctx); err != nil {
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: "fix the sink or its topic as the message says, then run doctor again"}}, nil
	}
	return nil, nil
}

// Files returns the file of the credentials.
func (c Config) Files() (secret, trusted []string) {
	return []string{cmp.Or(c.Credentials, os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"))}, nil
}
