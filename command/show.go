package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type showCommand struct {
	file
	Process  string  `arg:"" optional:"" help:"Name of the process. Without it, a record is looked for in every process of the file."`
	ID       *string `name:"id" xor:"what" required:"" placeholder:"ID" help:"Show where the record with this id is."`
	Key      *string `xor:"what" required:"" placeholder:"KEY" help:"Show where the records with this key are, the last ones first."`
	DedupKey *string `xor:"what" required:"" placeholder:"KEY" help:"Show where the record with this dedup key is."`
	After    *int64  `xor:"what" required:"" placeholder:"SEQUENCE" help:"Print what the process delivered after this number of its sequence, the last one that the receiver has."`
	Payload  bool    `help:"Of a record: print its key, type and payload, too."`
	JSON     bool    `name:"json" help:"Of a record: print JSON on one line. 64-bit numbers are strings."`
	From     string  `placeholder:"POSITION" help:"With --after: go on from here, the place with which an earlier answer ended."`
	Limit    int     `default:"1000" placeholder:"N" help:"With --after: print at most N records, by default ${default}. The last line says whether there are more."`
	Pruned   bool    `help:"With --after: print those that are in the table although retention has removed others."`
}

// Run is called by kong.
func (c *showCommand) Run(ctx context.Context, sys system) error {
	if c.After == nil {
		return c.find(ctx, sys)
	}
	switch {
	case *c.After < 0:
		return &daemon.UsageError{Err: errors.New("--after must not be negative: 0 is before the first record")}
	case c.Limit < 1 || c.Limit > daemon.MaxShown:
		return &daemon.UsageError{Err: fmt.Errorf("--limit must be between 1 and %d", daemon.MaxShown)}
	case c.Process == "":
		return &daemon.UsageError{Err: errors.New("--after needs the name of a process, whose sequence it counts")}
	case c.Payload || c.JSON:
		return &daemon.UsageError{Err: errors.New("--payload and --json go with --id, --key and --dedup-key: with --after, each record is a line of JSON with its payload")}
	}
	from, err := daemon.ParsePlace(c.From)
	if err != nil {
		return &daemon.UsageError{Err: fmt.Errorf("--from: %w", err)}
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	ask := daemon.Ask{After: *c.After, From: from, Limit: c.Limit, Pruned: c.Pruned}
	return daemon.ShowRecords(ctx, config, c.Process, ask, visible.JSON(sys.stdout))
}

// find shows where one record is.
func (c *showCommand) find(ctx context.Context, sys system) error {
	sought, err := c.sought()
	if err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	reader, err := daemon.NewStatusReader(ctx, daemon.StatusConfig{Config: config})
	if err != nil {
		return err
	}
	defer reader.Close()
	finder, err := daemon.NewFinder(reader, c.Process)
	if err != nil {
		return err
	}
	all, err := finder.Find(ctx, sought)
	if err != nil {
		return err
	}
	found, err := c.print(sys, all)
	asked := !slices.ContainsFunc(all, func(s daemon.Search) bool { return s.Problem != "" })
	switch {
	case err != nil || found:
	case !asked:
		err = errors.New("no record was found in the processes that could be asked: what is above keeps the others from it")
	default:
		err = errors.New("no record was found: if the row was removed or left out by source.where, no process delivers it")
	}
	return err
}

// maxPayload bounds the payload of one record that is printed, so that those of a key fit into the memory.
const maxPayload = 1 << 20

func (c *showCommand) sought() (daemon.Sought, error) {
	var s daemon.Sought
	if c.Payload {
		s.Payload = maxPayload
	}
	for _, given := range []struct {
		flag *string
		to   *string
	}{{c.ID, &s.ID}, {c.Key, &s.Key}, {c.DedupKey, &s.DedupKey}} {
		switch {
		case given.flag == nil:
		case *given.flag == "":
			return s, &daemon.UsageError{Err: errors.New("the value of the record is empty")}
		default:
			*given.to = *given.flag
		}
	}
	if c.From != "" || c.Pruned {
		return s, &daemon.UsageError{Err: errors.New("--from and --pruned go with --after")}
	}
	return s, nil
}

// print returns whether a record was found.
func (c *showCommand) print(sys system, all []daemon.Search) (bool, error) {
	if c.JSON {
		return daemon.PrintFoundJSON(sys.stdout, all)
	}
	return sys.out().Found(all)
}
