package command

import (
	"context"
	"log/slog"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type sendTestCommand struct {
	file
	Process string `arg:"" help:"Name of the process."`
	Key     string `placeholder:"KEY" default:"ordered-test" help:"Key of the test, for a sink that makes its address of the key. Default: ${default}."`
	Type    string `placeholder:"TYPE" default:"ordered-test" help:"Type of the test, for a sink that makes its address of the type. Default: ${default}."`
}

// Run is called by kong.
func (c *sendTestCommand) Run(ctx context.Context, sys system, logger *slog.Logger) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	tried, err := daemon.SendTest(ctx, daemon.Trial{
		Config: config, Process: c.Process, Key: c.Key, Type: c.Type,
		Output: daemon.Output{Stdout: sys.stdout, Logger: logger},
	})
	if err != nil {
		return err
	}
	return sys.err().Tried(c.Process, tried) // stdout belongs to the stdout sink
}
