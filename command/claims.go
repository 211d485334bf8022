package command

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type claimsCommand struct {
	Collect claimsCollect `cmd:"" help:"Remove the payloads of claim checks to which no row refers: those of rolled back transactions, and of rows that were deleted."`
}

type claimsCollect struct {
	file
	OlderThan time.Duration `default:"24h" placeholder:"AGE" help:"Remove only what was stored so long ago: at least 1m, and longer than any transaction that writes records."`
	Also      []string      `placeholder:"TABLE" help:"Another table whose rows may refer to payloads, with its schema. Can be given more than once. Known are the tables that processes read, archives and dead letters."`
	DryRun    bool          `help:"Remove nothing. Show how much would be removed."`
}

// Run is called by kong.
func (c *claimsCollect) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	fate, verb := daemon.DeleteObject, "removed"
	if c.DryRun {
		fate, verb = daemon.LeaveObject, "would be removed"
	}
	all, err := daemon.CollectClaims(ctx, config, daemon.Collection{OlderThan: c.OlderThan, Also: c.Also, Fate: fate})
	if printed := daemon.PrintCollected(sys.out(), all, verb); err == nil {
		err = printed
	}
	return err
}
