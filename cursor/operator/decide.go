package operator

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Change is what a decision changes in a cursor's row.
type Change struct {
	// Before is the row as it was found, After as it was left.
	Before, After cursor.Row
	// Changed is false if the process was in the wanted state already: then nothing was written.
	Changed bool
	// Expect is the value of Decision.Expect that allows only this change.
	Expect cursor.Position
	// Looks reports that the source looks for rows that were stamped before the position, before it reads on:
	// see cursor.PromotedError.
	Looks bool
}

// operate carries out an action on the row, or rehearses it.
func (o *Operator) operate(ctx context.Context, process string, d cursor.Decision, a action) (Change, error) {
	return o.decide(ctx, process, d, a, func(conn *pgx.Conn, c Change, d cursor.Decision) error {
		if !c.Changed {
			return nil
		}
		return o.write(ctx, conn, c, a, d)
	})
}

// decide locks the row, checks an action against it, and calls write to make the change durable. A rehearsal
// reads the row without a lock, and writes nothing.
func (o *Operator) decide(ctx context.Context, process string, d cursor.Decision, a action, write func(*pgx.Conn, Change, cursor.Decision) error) (Change, error) {
	check := d.Checked
	if a.needsReason {
		check = d.Reasoned
	}
	d, err := check()
	if err != nil {
		return Change{}, o.db.Explain(a.name, process, err)
	}
	if d.DryRun {
		row, err := o.store.Look(ctx, process)
		if err != nil {
			return Change{}, err
		}
		change, err := a.plan(row, d)
		if err == nil && a.to != nil {
			err = o.rehearsePruned(ctx, process, row.Position, *a.to, d)
		}
		return change, o.refusal(a, process, err)
	}
	var change Change
	err = o.store.LockForOperator(ctx, process, d.Timeout, func(conn *pgx.Conn, row cursor.Row) (err error) {
		if change, err = a.plan(row, d); err != nil {
			return err
		}
		if a.to != nil {
			if err := o.checkPruned(ctx, conn, process, row.Position, *a.to, d); err != nil {
				return err
			}
		}
		return write(conn, change, d)
	})
	return change, o.refusal(a, process, err)
}

func (o *Operator) refusal(a action, process string, err error) error {
	if err == nil {
		return nil
	}
	return o.db.Explain(a.name, process, tables.Unaudited(err))
}
