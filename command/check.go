package command

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type checkCommand struct{ file }

// Run is called by kong.
func (c *checkCommand) Run(sys system) error {
	config, path, err := c.read(sys)
	if err != nil {
		return err
	}
	out := sys.out()
	for _, problem := range config.Exposed() {
		fmt.Fprintln(out, "warning:", visible.Inline(problem))
	}
	fmt.Fprintf(out, "%s: the file is valid (processes: %s); doctor checks it against the database\n",
		visible.Inline(path), visible.Inline(strings.Join(config.Names(), ", ")))
	return nil
}
