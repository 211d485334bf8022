package command

import (
	"context"
	"errors"
	"io"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen/live"
)

type statusCommand struct {
	optionalFile
	Process string `arg:"" optional:"" help:"Show only this process."`
	form
	Watch bool `help:"Look every second, until interrupted. On a terminal: a view with keys to pause, retry and open a process; ? lists them."`
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
		if screen.Terminal(sys.stdin) && screen.Moves(sys.stdout, sys.look) && !c.JSON && !c.Wide {
			return live.Run(ctx, live.NewBackend(config, reader), sys.out(), sys.stdin, sys.stdout)
		}
		return c.watch(ctx, sys, reader)
	}
	all, err := reader.Read(ctx)
	if err != nil {
		return err
	}
	if err := c.print(ctx, sys, reader, all); err != nil {
		return err
	}
	if daemon.Halted(all) {
		return daemon.ErrHalted
	}
	return nil
}

func (c *statusCommand) print(ctx context.Context, sys system, reader *daemon.StatusReader, all []daemon.Status) error {
	if c.JSON {
		return daemon.PrintStatusJSON(sys.stdout, all)
	}
	rates, err := reader.Rates(ctx, all)
	if err != nil {
		rates = nil // the rest is known
	}
	return errors.Join(c.page(sys).Status(all, rates), err)
}

// watch prints one status after the other. The rates are those since the one before.
func (c *statusCommand) watch(ctx context.Context, sys system, reader *daemon.StatusReader) error {
	if c.JSON {
		return screen.Watch(ctx, c.page(sys), reader, daemon.PrintStatusJSON)
	}
	var before daemon.Counted
	return screen.Watch(ctx, c.page(sys), reader, func(w io.Writer, all []daemon.Status) error {
		now := daemon.CountOf(all)
		rates := now.All(before, all)
		before = now
		return c.page(sys).On(w).Status(all, rates)
	})
}
