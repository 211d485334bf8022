package command

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

type pruneCommand struct {
	file
	Table  []string `arg:"" optional:"" help:"Carry out only the rules of these tables, named as in the file."`
	DryRun bool     `help:"Remove nothing. Show what would be removed first, and what holds rows back."`
}

// Run is called by kong.
func (c *pruneCommand) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	pass := rules.Pass
	if c.DryRun {
		pass = rules.Preview
	}
	all, err := daemon.Prune(ctx, config, c.Table, pass)
	if printed := daemon.PrintPruned(sys.out(), all, c.DryRun); err == nil {
		err = printed
	}
	return err
}
