package command

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

type processCommand struct {
	Rename  processRename  `cmd:"" help:"Give the cursor of a process another name. It goes on where it was, with its history and dead letters."`
	Compare processCompare `cmd:"" help:"Compare two versions: what they have built of a read model, at a moment when both have applied the same records, or the calls of their sinks, if the new one has shadow. Exits with 1 if something differs."`
	Switch  processSwitch  `cmd:"" help:"Put a new version of a read model in the place of the old one, in one transaction. The same command with the names exchanged takes it back."`
	Forget  processForget  `cmd:"" help:"Remove a cursor. A process of its name starts anew, and sends the records after its start again."`
}

type processRename struct {
	decision
	anyReason
	New string `arg:"" help:"New name."`
}

// Run is called by kong.
func (c *processRename) Run(ctx context.Context, sys system) error {
	return c.carryOut(ctx, sys, c.anyReason, func(ctx context.Context, config daemon.Config, d cursor.Decision) (daemon.Outcome, error) {
		return daemon.Rename(ctx, config, c.Process, c.New, d)
	})
}

type processForget struct {
	decision
	needReason
}

// Run is called by kong.
func (c *processForget) Run(ctx context.Context, sys system) error {
	return c.carryOut(ctx, sys, c.needReason, func(ctx context.Context, config daemon.Config, d cursor.Decision) (daemon.Outcome, error) {
		return daemon.Forget(ctx, config, c.Process, d)
	})
}

// versions are two processes of the file that build one read model from one source.
type versions struct {
	file
	Old string `arg:"" help:"Process of the version that readers use."`
	New string `arg:"" help:"Process of the version to compare, or to use from now on."`
}

type processCompare struct {
	versions
	SQL     string        `name:"sql" placeholder:"QUERY" help:"Query that returns a row for each difference: (TABLE v1.balance EXCEPT TABLE v2.balance) UNION ALL (TABLE v2.balance EXCEPT TABLE v1.balance). Required for read models."`
	Hold    bool          `help:"Let writers to the source's table wait for up to a second: for a table into which so much is written that the two versions are never at the same record."`
	Timeout time.Duration `default:"${timeout}" help:"How long to wait until both versions have applied the same records."`
}

// Run is called by kong.
func (c *processCompare) Run(ctx context.Context, sys system) error {
	if err := waits(c.Timeout); err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	v := daemon.Versions{Old: c.Old, New: c.New}
	switch {
	case c.SQL == "" && v.OfCalls():
		calls, err := daemon.CompareCalls(ctx, config, v)
		if err != nil {
			return err
		}
		return daemon.PrintCalls(sys.out(), v, calls)
	case c.SQL == "":
		return &daemon.UsageError{Err: errors.New("give --sql, a query that returns a row for each difference. Only for a process with shadow there is something to compare without it")}
	}
	difference, err := daemon.Compare(ctx, config, v, c.SQL, c.Hold, c.Timeout)
	if err != nil {
		return err
	}
	return daemon.PrintDifference(sys.out(), difference)
}

type processSwitch struct {
	versions
	decider
	needReason
	SQL     []string      `name:"sql" sep:"none" required:"" placeholder:"STATEMENT" help:"What makes readers use the new version, with the schema before each name: CREATE OR REPLACE VIEW public.balance AS TABLE v2.balance. Give several in their order."`
	Timeout time.Duration `default:"${timeout}" help:"How long to wait until the new version has applied what the old one has, and for a lock."`
	DryRun  bool          `help:"Change nothing. Say whether the new version has applied what the old one has."`
}

// Run is called by kong.
func (c *processSwitch) Run(ctx context.Context, sys system) error {
	if err := c.given(); err != nil && !c.DryRun {
		return err
	}
	if err := waits(c.Timeout); err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	d := cursor.Decision{Actor: c.actor(), Reason: c.Reason, Timeout: c.Timeout, DryRun: c.DryRun}
	switched, err := daemon.Switch(ctx, config, daemon.Versions{Old: c.Old, New: c.New}, c.SQL, d)
	if err != nil {
		return err
	}
	return daemon.PrintSwitched(sys.out(), switched, c.DryRun)
}
