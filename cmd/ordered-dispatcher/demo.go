package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/demo"
)

type demoCommand struct {
	Database string        `placeholder:"URL" help:"Make the demo's tables on this server, in a schema that is removed again. Default: a throw-away server; DATABASE_URL is not read. Others on this machine can see a password in URL: PGPASSWORD is for it."`
	Duration time.Duration `default:"15s" help:"How long bookings are made; the worker is killed in the middle of it."`
}

// Run is called by kong. The environment may name a database that people work with, so
// it does not choose the server.
func (c *demoCommand) Run(ctx context.Context, sys system) error {
	if c.Database != "" {
		if err := daemon.CheckURL(c.Database); err != nil {
			return fmt.Errorf("--database: %w", err)
		}
		sys.known.secrets = daemon.Config{Database: c.Database}.Secrets
	}
	return demo.Run(ctx, demo.Config{DatabaseURL: c.Database, Duration: c.Duration, Output: sys.stdout})
}
