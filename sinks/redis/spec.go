package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon. It ends what go-redis prints to standard error, past the daemon's log: errors of
// the sink have what it is about.
func Spec() sinks.Spec {
	redis.SetLogger(new(logging.VoidLogger))
	return sinks.Spec{Name: "redis", Page: "redis.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns every fault at once, and quotes nothing that may be secret.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// Settings names the server, the stream and the state.
func (c Config) Settings() map[string]string {
	return map[string]string{"target": c.String(), "state": c.withDefaults().State}
}

// Open makes the sink.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	sink, err := New(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.WindowTimeout(c.withDefaults().Timeout)}, err
}

// checkTimeout bounds a look at Redis: the checks after it need the rest of the time.
const checkTimeout = 5 * time.Second

// Check looks at the server and the stream.
func (c Config) Check(ctx context.Context, _ string, _ sinks.Around) ([]sinks.Finding, error) {
	sink, err := New(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := sink.check(ctx)
	if err != nil {
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: "fix the sink or Redis as the message says, then run doctor again"}}, nil
	}
	return found, nil
}

// Exposures finds a server to which the password goes without TLS.
func (c Config) Exposures() []sinks.Finding {
	return sinks.Credentials(plaintext.URL(c.URL, c.Password != "", plainScheme), tlsScheme)
}

// Untestable returns why no test can go to the stream: each record needs the one before it.
func (c Config) Untestable() string {
	return "a record is appended only after the one before it, so a test would be refused, or the next record would be: `doctor` looks at the server"
}
