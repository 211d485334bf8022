package desk

import (
	"context"
	"log/slog"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// Config describes a desk.
type Config struct {
	// Config is the configuration of the daemon, with its Database. Required.
	Config daemon.Config
	// Logger is required.
	Logger *slog.Logger
}

// Desk answers questions about all processes, and carries out decisions. It is safe for use by several goroutines.
type Desk struct {
	config Config
}

// New makes a desk. It does not connect yet. The caller closes it.
func New(_ context.Context, c Config) (*Desk, error) {
	return &Desk{config: c}, nil
}

// Close ends what is under way and closes the connections.
func (d *Desk) Close() {}

// Watch makes the board look, for as long as ctx lives. After each look it sends a tick: then Fleet and Process answer
// from memory, at once. A viewer that is busy misses ticks, and never more than it needs. process is the one that
// the viewer looks at, which every look includes; "" is none. The channel is closed when ctx ends.
func (d *Desk) Watch(_ context.Context, _ string) <-chan struct{} {
	return nil
}
