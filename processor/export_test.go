package processor

import (
	"log/slog"
	"time"
)

// DefaultLogger is the logger that a process uses.
func (c Config) DefaultLogger() *slog.Logger { return c.withDefaults().Logger }

// AskWithin shortens what a round may ask the database for.
func (p *Process) AskWithin(d time.Duration) { p.patience = d }
