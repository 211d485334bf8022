package command

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

type historyCommand struct {
	optionalFile
	Process string `arg:"" help:"Name of the process."`
	form
	Limit int `default:"50" placeholder:"N" help:"Show the last N events, newest first. Default: ${default}."`
}

// Run is called by kong.
func (c *historyCommand) Run(ctx context.Context, sys system) error {
	if c.Limit < 1 || c.Limit > operator.MaxHistory {
		return &daemon.UsageError{Err: fmt.Errorf("--limit must be between 1 and %d", operator.MaxHistory)}
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	// Without its processes the file does not restrict the names: a process that it no longer has keeps its history.
	config.Processes = nil
	operator, err := daemon.NewOperator(ctx, config, c.Process)
	if err != nil {
		return err
	}
	defer operator.Close()
	events, err := operator.History(ctx, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return daemon.PrintHistoryJSON(sys.stdout, events)
	}
	return c.page(sys).History(events)
}
