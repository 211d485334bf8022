package command

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type doctorCommand struct{ file }

// Run is called by kong.
func (c *doctorCommand) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	findings, err := daemon.Doctor(ctx, config)
	if err != nil {
		return err
	}
	if err := sys.out().Findings(findings); err != nil {
		return err
	}
	return daemon.Verdict(findings)
}
