package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// HandlerConfig describes a Handler. Zero values mean defaults.
type HandlerConfig struct {
	// Secret is the secret of the sink, or several with spaces between. Each request must have an ordered-signature of
	// one of them. Each receiver needs a secret of its own: a request to one receiver is valid at another one with the
	// same secret. Required, unless Unsigned.
	Secret string
	// Unsigned has the handler check no signature. Then anybody who reaches it can send records.
	Unsigned bool
	// Tolerance is how far the time of a signature may be from the clock. Default 5 min.
	Tolerance time.Duration
	// MaxBytes bounds a body. Default 64 MiB, as max_record_bytes. The signature covers the body, so each connection may
	// take as much before its sender is known: set the size of your largest payload, and bound the connections.
	MaxBytes int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger gets each record that was not applied, and each POST that was refused, and why. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultTolerance = 5 * time.Minute
	defaultMaxBytes  = 64 << 20
)

func (c HandlerConfig) withDefaults() HandlerConfig {
	c.Tolerance = cmp.Or(c.Tolerance, defaultTolerance)
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultMaxBytes)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// validate returns the keys of the secret, or all faults at once.
func (c HandlerConfig) validate(db Beginner, effect Effect) (signature.Keys, error) {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("inbox: "+format, args...))
		}
	}
	keys, err := signature.Parse(c.Secret)
	fault(err != nil, "Secret %w", err)
	fault(c.Secret == "" && !c.Unsigned, "Secret is missing: is its environment variable unset? Unsigned: true takes records from anybody")
	fault(c.Secret != "" && c.Unsigned, "Secret and Unsigned exclude each other")
	fault(c.Tolerance < 0, "Tolerance is negative: %v", c.Tolerance)
	fault(c.MaxBytes < 0, "MaxBytes is negative: %d", c.MaxBytes)
	fault(db == nil, "the database is nil")
	fault(effect == nil, "the effect is nil")
	return keys, errors.Join(faults...)
}
