package stdout

import (
	"errors"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "stdout", Page: "stdout.md", New: func() sinks.Config { return &Config{} }}
}

// Validate accepts every Config: the daemon sets the Writer.
func (c Config) Validate() error { return nil }

// Settings returns none.
func (c Config) Settings() map[string]string { return nil }

// Open makes the sink: for programs byte by byte, and for a terminal with hidden characters escaped.
func (c Config) Open(env sinks.Environment) (sinks.Opened, error) {
	c.Writer = env.Stdout
	if isClosed(c.Writer) {
		return sinks.Opened{}, errors.New("the standard output is closed, or leads to the null device: every record would be lost. " +
			"Connect it to the program that reads the records")
	}
	if visible.IsTerminal(c.Writer) {
		c.Writer = visible.JSON(c.Writer)
	}
	sink, err := New(c)
	return sinks.Opened{Each: sink}, err
}
