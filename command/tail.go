package command

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type tailCommand struct {
	file
	Process string `arg:"" help:"Name of the process."`
	Last    int    `short:"n" default:"10" placeholder:"N" help:"Begin with the last N records that the cursor has passed. Default: ${default}."`
	Once    bool   `help:"End after those."`
	Payload bool   `help:"Print the payload of each record, too: what amend gave to it, else what its row has now."`
	JSON    bool   `name:"json" help:"Print JSON, one line for each record and event."`
}

// Run is called by kong.
func (c *tailCommand) Run(ctx context.Context, sys system) error {
	if c.Last < 0 || c.Last > daemon.MaxTailed {
		return &daemon.UsageError{Err: fmt.Errorf("-n must be between 0 and %d", daemon.MaxTailed)}
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	print, secrets := sys.out().Tailed, config.Secrets()
	if c.JSON {
		print = func(one daemon.Tailed) error { return daemon.PrintTailedJSON(sys.stdout, one) }
	}
	tail := daemon.TailConfig{Config: config, Process: c.Process, Last: c.Last, Once: c.Once, Payload: c.Payload}
	return daemon.Tail(ctx, tail, func(one daemon.Tailed) error {
		one.Problem = secrets.Replace(one.Problem)
		return print(one)
	})
}
