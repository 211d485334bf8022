package command

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type partitionsCommand struct {
	file
	Partition []string `arg:"" optional:"" help:"Show only these, named as in SQL. The exit code is 0 if all of them are safe."`
	JSON      bool     `name:"json" help:"Print JSON on one line. 64-bit numbers are strings."`
}

// Run is called by kong.
func (c *partitionsCommand) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	all, err := daemon.Partitions(ctx, config, c.Partition)
	if err != nil {
		return err
	}
	print := sys.out().Partitions
	if c.JSON {
		print = func(all []daemon.Retention) error { return daemon.PrintPartitionsJSON(sys.stdout, all) }
	}
	if err := print(all); err != nil || len(c.Partition) == 0 {
		return err
	}
	return daemon.Keep(all)
}
