package command

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

type eraseCommand struct {
	file
	decider
	needReason
	Table  string   `arg:"" help:"Table, named as in the file."`
	Key    string   `required:"" placeholder:"KEY" help:"Key of the rows. The history does not keep it."`
	By     string   `placeholder:"COLUMN" help:"Column that has the key. Default: source.columns.key."`
	Blank  []string `placeholder:"COLUMN" help:"Empty this column and keep the row. Can be given more than once. Default: delete the rows."`
	DryRun bool     `help:"Erase nothing. Show how much would be erased."`
}

// Run is called by kong.
func (c *eraseCommand) Run(ctx context.Context, sys system) error {
	if err := c.given(); err != nil && !c.DryRun {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	done, err := daemon.Erase(ctx, config, c.Table, table.Erase{By: c.By, Key: c.Key, Blank: c.Blank}, cursor.Decision{Actor: c.actor(), Reason: c.Reason, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	return daemon.PrintErased(sys.stdout, c.Table, done, c.DryRun)
}
