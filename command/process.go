package command

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

type processCommand struct {
	Rename processRename `cmd:"" help:"Give the cursor of a process another name. It goes on where it was, with its history and dead letters."`
	Forget processForget `cmd:"" help:"Remove a cursor. A process of its name starts anew, and sends the records after its start again."`
}

type processRename struct {
	decision
	anyReason
	New string `arg:"" help:"New name."`
}

// Run is called by kong.
func (c *processRename) Run(ctx context.Context, sys system) error {
	return c.carryOut(ctx, sys, c.Reason, func(ctx context.Context, config daemon.Config, d cursor.Decision) (daemon.Outcome, error) {
		return daemon.Rename(ctx, config, c.Process, c.New, d)
	})
}

type processForget struct {
	decision
	needReason
}

// Run is called by kong.
func (c *processForget) Run(ctx context.Context, sys system) error {
	if err := c.given(); err != nil && !c.DryRun {
		return err
	}
	return c.carryOut(ctx, sys, c.Reason, func(ctx context.Context, config daemon.Config, d cursor.Decision) (daemon.Outcome, error) {
		return daemon.Forget(ctx, config, c.Process, d)
	})
}
