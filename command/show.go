package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type showCommand struct {
	file
	Process string `arg:"" help:"Name of the process."`
	After   int64  `required:"" placeholder:"SEQUENCE" help:"Print what the process delivered after this number of its sequence, the last one that the receiver has."`
	From    string `placeholder:"POSITION" help:"Go on from here: the place with which an earlier answer ended."`
	Limit   int    `default:"1000" placeholder:"N" help:"Print at most N records. The last line says whether there are more."`
	Pruned  bool   `help:"Print those that are in the table although retention has removed others."`
}

// Run is called by kong.
func (c *showCommand) Run(ctx context.Context, sys system) error {
	if c.After < 0 {
		return &daemon.UsageError{Err: errors.New("--after must not be negative: 0 is before the first record")}
	}
	if c.Limit < 1 || c.Limit > daemon.MaxShown {
		return &daemon.UsageError{Err: fmt.Errorf("--limit must be between 1 and %d", daemon.MaxShown)}
	}
	from, err := daemon.ParsePlace(c.From)
	if err != nil {
		return &daemon.UsageError{Err: fmt.Errorf("--from: %w", err)}
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	ask := daemon.Ask{After: c.After, From: from, Limit: c.Limit, Pruned: c.Pruned}
	return daemon.ShowRecords(ctx, config, c.Process, ask, visible.JSON(sys.stdout))
}
