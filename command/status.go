package command

import (
	"context"
	"io"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type statusCommand struct {
	optionalFile
	Process string `arg:"" optional:"" help:"Show only this process."`
	JSON    bool   `name:"json" help:"Print JSON, one line each time. 64-bit numbers are strings."`
	Watch   bool   `help:"Repeat every second, until interrupted."`
}

// Run is called by kong.
func (c *statusCommand) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	reader, err := daemon.NewStatusReader(ctx, daemon.StatusConfig{Config: config, Process: c.Process})
	if err != nil {
		return err
	}
	defer reader.Close()
	if c.Watch {
		return daemon.Watch(ctx, sys.stdout, reader, c.print())
	}
	all, err := reader.Read(ctx)
	if err != nil {
		return err
	}
	if err := c.print()(sys.stdout, all); err != nil {
		return err
	}
	if daemon.Halted(all) {
		return daemon.ErrHalted
	}
	return nil
}

func (c *statusCommand) print() func(io.Writer, []daemon.Status) error {
	if c.JSON {
		return daemon.PrintStatusJSON
	}
	return daemon.PrintStatus
}
