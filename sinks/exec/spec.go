package exec

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "exec", Page: "exec.md", New: func() sinks.Config { return &Config{} }}
}

// Settings names the program and the user.
func (c Config) Settings() map[string]string { return map[string]string{"target": c.String()} }

// Confidential: the arguments may hold a secret.
func (c Config) Confidential() map[string]string {
	return map[string]string{"command": strings.Join(c.Command, "\x00")}
}

// Open makes the sink. The sink bounds the writing of each line, and the wait for each answer. A call has as many
// records as a checkpoint.
func (c Config) Open(env sinks.Environment) (sinks.Opened, error) {
	c.Logger = env.Logger
	sink, err := New(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.CallTimeout(min(2*c.withDefaults().Timeout*time.Duration(max(env.Checkpoint, 1)), sinks.MaxTimeout))}, err
}

// Check looks for the user, the directory and the program, and starts nothing.
func (c Config) Check(context.Context, string, sinks.Around) ([]sinks.Finding, error) {
	refuse := func(fix, problem string, args ...any) ([]sinks.Finding, error) {
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: fmt.Sprintf(problem, args...), Fix: fix}}, nil
	}
	if _, err := New(c); err != nil {
		return refuse("correct user, or run ordered-dispatcher so that it can change to it", "the sink's command cannot be started as its user: %v", err)
	}
	if err := c.program().DirFault(); err != nil {
		return refuse("make the directory, or correct dir", "the sink's command cannot be started: %v", err)
	}
	if err := c.program().CommandFault(); err != nil {
		return refuse("install the program, make it executable, or give its whole path", "the sink's command cannot be started on this machine: %v", err)
	}
	return nil, nil
}

// Exposures finds a secret among the arguments.
func (c Config) Exposures() []sinks.Finding {
	if len(c.Secrets) == 0 {
		return nil
	}
	return []sinks.Finding{{
		Severity: cursor.Warn, Fix: "give it to the child in env",
		Problem: "an argument of command is a reference, and every user of this machine sees arguments in its list of processes",
	}}
}

// Files returns the program and the first of its arguments that is a file. If the program is an interpreter, that
// file is its script.
func (c Config) Files() (secret, trusted []string) { return nil, c.program().Files() }
