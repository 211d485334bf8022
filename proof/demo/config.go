package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// Config of a demo. Zero values mean defaults.
type Config struct {
	// DatabaseURL is the server to use. Its user needs the right to create a schema in that database; the demo makes one of
	// its own and drops it. Default: a throw-away server on this machine.
	DatabaseURL string
	// Executable is the program whose `run -c FILE` the two workers are. Default: the running one.
	Executable string
	// Duration is how long bookings are made; the worker is killed in the middle of it. Default 15 s, at least 1 s,
	// at most 1 h.
	Duration time.Duration
	// Output gets what people read. On a terminal one line is kept up to date. Default: os.Stdout.
	Output io.Writer

	stall time.Duration // for how long nothing may arrive though something waits; default 20 s
}

const (
	defaultDuration = 15 * time.Second
	minDuration     = time.Second
	maxDuration     = time.Hour
	defaultStall    = 20 * time.Second
)

// withDefaults completes a copy and reports every fault at once.
func (c Config) withDefaults() (Config, error) {
	var faults []error
	if c.Duration == 0 {
		c.Duration = defaultDuration
	}
	if c.Duration < minDuration || c.Duration > maxDuration {
		faults = append(faults, fmt.Errorf("duration must be between %[2]v and %[3]v, got %[1]v", c.Duration, minDuration, maxDuration))
	}
	if c.stall == 0 {
		c.stall = defaultStall
	}
	if c.Output == nil {
		c.Output = os.Stdout
	}
	if c.Executable == "" {
		var err error
		if c.Executable, err = os.Executable(); err != nil {
			faults = append(faults, fmt.Errorf("find the program to run the workers with: %w", err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return Config{}, fmt.Errorf("demo configuration: %w", err)
	}
	return c, nil
}

// secrets are what the demo must not print.
func (c Config) secrets() secret.Set {
	parsed, err := pgx.ParseConfig(c.DatabaseURL)
	if err != nil {
		return secret.New() // openPool refuses it, and quotes nothing of it
	}
	return secret.New(parsed.Password)
}
