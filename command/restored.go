package command

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

type restoredCommand struct {
	optionalFile
	decider
	needReason
	fenced
	Process []string      `arg:"" optional:"" help:"Names of processes, or --all."`
	All     bool          `help:"All cursors of the schema."`
	Timeout time.Duration `default:"${timeout}" help:"How long to wait for each worker's next checkpoint, or for another session that has locked the row."`
	DryRun  bool          `help:"Change nothing and do not wait. Show what would be done."`
}

func (c *restoredCommand) alternatives() string { return "(<process> ... | --all)" }

// Run is called by kong.
func (c *restoredCommand) Run(ctx context.Context, sys system) error {
	if c.All == (len(c.Process) > 0) {
		return &daemon.UsageError{Err: errors.New("name processes or give --all, but not both")}
	}
	if err := c.given(); err != nil && !c.DryRun {
		return err
	}
	if err := waits(c.Timeout); err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	config.Processes = nil // a process that the file no longer has keeps its cursor
	ctx, stop := interruptible(ctx)
	defer stop()
	d := cursor.Decision{Actor: c.actor(), Reason: c.Reason, Timeout: c.Timeout, DryRun: c.DryRun, Fenced: c.Fenced}
	return daemon.Restored(ctx, config, c.Process, d, sys.out().Outcome)
}
