package command

import (
	"context"
	"os"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type notifyTestCommand struct {
	file
	Target []string `arg:"" optional:"" help:"Tell only these targets, named as in the file."`
}

// Run is called by kong.
func (c *notifyTestCommand) Run(ctx context.Context, sys system) error {
	config, _, err := c.read(sys)
	if err != nil {
		return err
	}
	sys.known.secrets = config.Secrets
	ctx, stop := interruptible(ctx)
	defer stop()
	host, _ := os.Hostname()
	return daemon.TestTargets(ctx, sys.stdout, daemon.TargetsConfig{Config: config, Targets: c.Target, Worker: host})
}
