package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// beforeFirstRun reports whether a decision failed because no worker has run the process yet, and the file has that
// process. Without a file, a typing error would make a cursor that no worker ever moves.
func (o *Operator) beforeFirstRun(err error) bool {
	return errors.Is(err, cursor.ErrUnknown) && o.source != nil
}

// pauseNew makes the cursor of a process that has never run, in the state paused, at the place where the file lets it
// start.
func (o *Operator) pauseNew(ctx context.Context, d cursor.Decision) (Outcome, error) {
	at, err := o.startOfNew(ctx)
	if err != nil {
		return Outcome{}, err
	}
	change, err := o.prepare(ctx, at, cursor.Paused, "pause", d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	outcome := Outcome{Change: change}
	if at != cursor.Unplaced {
		outcome = o.leftOut(ctx, d, change)
	}
	warning, err := o.mayBeLost(ctx)
	if err != nil {
		outcome.Problem = fmt.Sprintf("the command could not find out whether its cursor is lost: %v", err)
	}
	outcome.Text = fmt.Sprintf("%s has not run yet, and %s paused at %s%s: nothing %s delivered until `ordered-dispatcher resume %s`%s",
		o.process, said(d, "is", "would be"), place(change.After.Position), outcome.Text, said(d, "is", "would be"), visible.Shell(o.process), warning)
	return outcome, nil
}

// prepare makes the cursor of a process. It begins other dedup keys if ids have started again since an earlier cursor
// of the name was given up.
func (o *Operator) prepare(ctx context.Context, at cursor.Position, state cursor.State, by string, d cursor.Decision) (operator.Change, error) {
	anew, err := processor.KeysMayRepeat(ctx, o.store, o.source, o.process)
	if err != nil {
		return operator.Change{}, err
	}
	if anew {
		return o.op.PrepareAnew(ctx, o.process, at, state, by, d)
	}
	return o.op.Prepare(ctx, o.process, at, state, by, d)
}

// mayBeLost returns a warning for a process without a cursor; "" if there is no sign that a cursor was lost.
func (o *Operator) mayBeLost(ctx context.Context) (string, error) {
	lost, err := o.store.MayBeLost(ctx)
	if err != nil || !lost {
		return "", err
	}
	return fmt.Sprintf(". A standby was promoted or the database restored: if the process has delivered before, its cursor is lost. "+
		"Before it goes on, compare what its receiver has with the table, and `ordered-dispatcher seek %s -c FILE --to-id ID --reason …`", visible.Shell(o.process)), nil
}

// startOfNew returns where a process of the file would start. It returns Unplaced if the file does not set it and the
// table holds records.
func (o *Operator) startOfNew(ctx context.Context) (cursor.Position, error) {
	switch o.written.Start {
	case processor.Beginning:
		return "", nil
	case processor.End:
		at, err := o.source.End(ctx)
		return at, Reachable(err)
	case "":
		records, _, err := o.source.Count(ctx)
		if err != nil || records == 0 {
			return "", Reachable(err)
		}
		return cursor.Unplaced, nil
	default:
		return o.find(ctx, ToPosition(o.written.Start))
	}
}

// seekNew makes the cursor of a process that has never run, at a position.
func (o *Operator) seekNew(ctx context.Context, to cursor.Position, d cursor.Decision) (Outcome, error) {
	change, err := o.prepare(ctx, to, cursor.Running, "seek", d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	outcome := o.leftOut(ctx, d, change)
	outcome.Text = fmt.Sprintf("%s has not run yet: its first worker %s at %s%s; `start` in the file %s", o.process, said(d, "starts", "would start"), place(to), outcome.Text,
		said(d, "no longer counts", "would no longer count"))
	return outcome, nil
}

// leftOut lists the records of the table up to the place where a process starts.
func (o *Operator) leftOut(ctx context.Context, d cursor.Decision, change operator.Change) Outcome {
	if change.After.Position == "" {
		return Outcome{Change: change}
	}
	outcome := o.outcome(ctx, change, "", "", change.After.Position)
	outcome.Text = fmt.Sprintf(": %s passed over for good", outcome.counted(d))
	return outcome
}

// asUsage turns the error of a process that does not know where to start into a fault of the file. It names the
// cursors that may be the process's own under an earlier name.
func (c *crew) asUsage(err error) error {
	var noStart *processor.NoStartError
	if !errors.As(err, &noStart) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	rows, listErr := c.store.List(ctx)
	if listErr != nil {
		return &UsageError{err}
	}
	return &UsageError{withLeft(err, unlisted(c.config, rows))}
}

// withLeft adds the cursors that may be the process's own.
func withLeft(err error, left []string) error {
	if len(left) == 0 {
		return err
	}
	return fmt.Errorf("%w. Cursors whose process is not in this file: %s", err, oneOf(left))
}

// unlisted returns the names of cursors that a file does not have.
func unlisted(c Config, rows []cursor.Row) []string {
	listed := make(map[string]bool, len(c.Processes))
	for _, p := range c.Processes {
		listed[p.Name] = true
	}
	var names []string
	for _, row := range rows {
		if !listed[row.Process] {
			names = append(names, row.Process)
		}
	}
	return names
}
