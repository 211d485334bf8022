package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Restored calls operator.Operator.Restored for processes, or for all cursors of the schema if none is named. It calls
// report with the outcome of each. If one cursor cannot be changed, the others still are; the errors of all are
// returned. But if all cursors are meant and one of them has halted on what may be an old primary, none is changed,
// unless the decision is Fenced.
func Restored(ctx context.Context, c Config, processes []string, d cursor.Decision, report func(Outcome) error) error {
	pool, store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if len(processes) == 0 {
		rows, err := store.List(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if f := row.Failure; f != nil && f.Class == cursor.ClassOldPrimary && !d.Fenced {
				return fmt.Errorf("nothing was changed for any process: %w, since process %s has halted: %s", operator.ErrOldPrimary, visible.Cut(row.Process), f.Error)
			}
			processes = append(processes, row.Process)
		}
	}
	var faults []error
	for _, process := range processes {
		o := &Operator{process: process, pool: pool, store: store, op: operator.New(store)}
		outcome, err := o.restored(ctx, d)
		if err == nil {
			err = report(outcome)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (o *Operator) restored(ctx context.Context, d cursor.Decision) (Outcome, error) {
	change, err := o.op.Restored(ctx, o.process, d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf("%s %s from %s, with new numbers (sequence %d, epoch %d)",
		o.process, said(d, "goes on", "would go on"), place(change.After.Position), change.After.Sequence, change.After.Epoch)
	if state := change.After.State; state != cursor.Running {
		text += fmt.Sprintf("; it %s %s: see `ordered-dispatcher status %s`", said(d, "stays", "would stay"), state, visible.Shell(o.process))
	}
	if d.DryRun {
		text = "dry run, nothing is changed. Without --dry-run: " + text
	}
	return Outcome{Change: change, Text: text}, nil
}
