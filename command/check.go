package command

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type checkCommand struct{ file }

// Run is called by kong.
func (c *checkCommand) Run(sys system) error {
	config, err := daemon.Load(c.Config, sys.stdin, sys.env, sys.kinds)
	if err != nil {
		return err
	}
	for _, problem := range config.ExposedFiles() {
		fmt.Fprintln(sys.stdout, "warning:", visible.Inline(problem))
	}
	fmt.Fprintf(sys.stdout, "%s: the file is valid (processes: %s); doctor checks it against the database\n",
		visible.Inline(c.Config), visible.Inline(strings.Join(config.Names(), ", ")))
	return nil
}
