package command

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

type grantsCommand struct {
	file
	Role     string `required:"" placeholder:"NAME" help:"Role that runs the processes, spelled as in the catalog. It does not have to exist yet."`
	Operator string `placeholder:"NAME" help:"Role of operators: it may pause, skip, seek and so on, and may not deliver."`
}

// Run is called by kong.
func (c *grantsCommand) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	return daemon.Grants(ctx, sys.stdout, daemon.GrantsConfig{Config: config, Role: c.Role, Operator: c.Operator})
}
