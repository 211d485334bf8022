package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

type eraseCommand struct {
	file
	decider
	needReason
	Table   string   `arg:"" help:"Table, named as in the file."`
	Key     string   `xor:"key" required:"" placeholder:"KEY" help:"Key of the rows. The history does not keep it."`
	KeyFile string   `xor:"key" required:"" placeholder:"FILE" help:"File that has the key; - is standard input. Other users of the machine may see the arguments of a command."`
	By      string   `placeholder:"COLUMN" help:"Column that has the key. Default: source.columns.key."`
	Blank   []string `placeholder:"COLUMN" help:"Empty this column and keep the row. Can be given more than once. Default: delete the rows."`
	DryRun  bool     `help:"Erase nothing. Show how much would be erased."`
}

// Run is called by kong.
func (c *eraseCommand) Run(ctx context.Context, sys system) error {
	if err := c.given(); err != nil && !c.DryRun {
		return err
	}
	key, err := c.key(sys.stdin)
	if err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	done, err := daemon.Erase(ctx, config, c.Table, table.Erase{By: c.By, Key: key, Blank: c.Blank}, cursor.Decision{Actor: c.actor(), Reason: c.Reason, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	return daemon.PrintErased(sys.out(), c.Table, done, c.DryRun)
}

// key returns the key of the rows. The last line end of a file does not belong to it.
func (c *eraseCommand) key(stdin io.Reader) (string, error) {
	if c.KeyFile == "" {
		return c.Key, nil
	}
	if c.KeyFile == "-" && c.Config == "-" {
		return "", &daemon.UsageError{Err: errors.New("-c and --key-file cannot both be standard input: give one of them as a file")}
	}
	read := func() ([]byte, error) { return bounded.Read(c.KeyFile) }
	if c.KeyFile == "-" {
		read = func() ([]byte, error) { return bounded.ReadAll(stdin) }
	}
	text, err := read()
	if err != nil {
		return "", &daemon.UsageError{Err: fmt.Errorf("read the key: %w; name a file that exists and that this user may read", err)}
	}
	key := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if key == "" {
		return "", &daemon.UsageError{Err: errors.New("read the key: there is none in --key-file")}
	}
	return key, nil
}
