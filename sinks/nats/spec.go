package nats

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "nats", Page: "nats.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns every fault at once, and quotes nothing that may be secret.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// Settings names the stream, the subject and the fence.
func (c Config) Settings() map[string]string {
	return map[string]string{"target": c.String(), "subject": c.Subject, "fence": c.Fence}
}

// Open makes the sink.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	sink, err := New(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.WindowTimeout(c.withDefaults().Timeout)}, err
}

// checkTimeout bounds a look at the stream: the checks after it need the rest of the time.
const checkTimeout = 5 * time.Second

// Check looks at the stream.
func (c Config) Check(ctx context.Context, process string, around sinks.Around) ([]sinks.Finding, error) {
	sink, err := New(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := sink.Check(ctx, process, besides(around.Others)...)
	if err != nil {
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: "fix the sink or its stream as the message says, then run doctor again"}}, nil
	}
	var all []sinks.Finding
	for _, f := range found {
		severity := cursor.Note
		if f.Weakens {
			severity = cursor.Warn
		}
		all = append(all, sinks.Finding{Severity: severity, Problem: f.Problem, Fix: f.Fix})
	}
	return all, nil
}

// besides returns the other processes that publish to streams, by name.
func besides(others map[string]sinks.Config) (all []Beside) {
	for _, process := range slices.Sorted(maps.Keys(others)) {
		c, is := others[process].(*Config)
		if !is {
			continue
		}
		if sink, err := New(*c); err == nil { // Validate names the fault
			all = append(all, Beside{Process: process, Sink: sink})
		}
	}
	return all
}

// Owned returns the fence, unless it is the default, which contains the whole name of the process.
func (c Config) Owned(process string) (what, fix string) {
	if c.Fence == "" {
		return "", ""
	}
	template, err := route.Tokens(c.Fence)
	if err != nil {
		return "", "" // Validate names the fault
	}
	fence, err := template.Of(processor.Delivery{Process: process})
	if err != nil {
		return "", "" // a delivery names it
	}
	return "fence " + fence + " of " + c.String(),
		"give each process a fence of its own, or name it by {{.Process}}, as the default does: the stream takes the claims of one process"
}

// Exposures finds a server to which the password goes without TLS.
func (c Config) Exposures() []sinks.Finding {
	if c.TLS != nil {
		return nil
	}
	return sinks.Credentials(plaintext.URL(c.URL, c.Password != "" || c.Token != "", "nats", "ws", ""), "tls")
}

// Files returns the files of the login.
func (c Config) Files() (secret, trusted []string) { return []string{c.LoginFile()}, nil }

// Untestable returns why no test can go to the stream: each record names the one before it, and a claim begins an epoch.
func (c Config) Untestable() string {
	return "each record of the stream names the one before it, so the next one would be refused after a test, and the worker would have to claim the stream anew: `doctor` looks at the server and the stream"
}
