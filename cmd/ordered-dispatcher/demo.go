package main

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/demo"
)

type demoCommand struct {
	Duration time.Duration `default:"15s" help:"How long bookings are made; the worker is killed in the middle of it."`
}

// Run is called by kong. The server is that of DATABASE_URL, or else a
// throw-away one.
func (c *demoCommand) Run(ctx context.Context, sys system) error {
	database, _ := sys.env("DATABASE_URL")
	return demo.Run(ctx, demo.Config{DatabaseURL: database, Duration: c.Duration, Output: sys.stdout})
}
