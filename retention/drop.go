package retention

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// drop detaches and drops the partitions whose range is over, one after the other, until a process needs a row.
func (p *pass) drop(ctx context.Context) error {
	var ranges []table.Range
	err := p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (removal operator.Removal, err error) {
		ranges, err = p.pruning.Ranges(ctx, tx)
		return removal, err
	})
	for _, r := range ranges {
		switch {
		case err != nil:
		case r.Detaching: // perhaps by an operator who wants to keep it
			p.report.Waiting = append(p.report.Waiting, fmt.Sprintf("%s: a DETACH was begun and did not end, so no process reads it. To end it: %s FINALIZE", r.Name(), p.pruning.DetachSQL(r)))
		case r.Over:
			err = p.dropOne(ctx, r)
		}
	}
	return err
}

// previewDrop lists the partitions that drop would drop.
func (p *pass) previewDrop(ctx context.Context, tx pgx.Tx) error {
	ranges, err := p.pruning.Ranges(ctx, tx)
	for _, r := range ranges {
		if err != nil || !r.Over {
			continue
		}
		var stop *table.Stop
		if stop, err = p.pruning.Needed(ctx, tx, r); err == nil && stop == nil {
			p.report.Partitions = append(p.report.Partitions, r.Name())
		}
		p.report.Holds = append(p.report.Holds, p.holds(stop)...)
	}
	return err
}

// inTx runs f in a transaction in which no cursor moves back, with the positions of all cursors.
func (p *pass) inTx(ctx context.Context, f func(context.Context, pgx.Tx) (operator.Removal, error)) error {
	return p.Operator.Prune(ctx, p.pruning.Table(), func(ctx context.Context, tx pgx.Tx, standing []operator.Standing) (operator.Removal, error) {
		if err := p.settle(standing); err != nil {
			return operator.Removal{}, err
		}
		return f(ctx, tx)
	})
}

// errNeeded reports that a process needs a row of a partition.
var errNeeded = errors.New("a process needs a row of the partition")

// dropOne drops a partition. First it is noted that its rows are gone, so that a seek back is refused from then on.
func (p *pass) dropOne(ctx context.Context, r table.Range) error {
	err := p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (operator.Removal, error) { return p.noteGone(ctx, tx, r) })
	if err == nil && r.Plain {
		err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (operator.Removal, error) { return p.dropAtOnce(ctx, tx, r) })
	} else if err == nil {
		err = p.dropDetached(ctx, r)
	}
	if errors.Is(err, errNeeded) {
		return nil // the report has who needs it
	}
	if err != nil {
		return fmt.Errorf("drop partition %s: %w", visible.Line(r.Name()), err)
	}
	p.report.Partitions = append(p.report.Partitions, r.Name())
	return nil
}

func (p *pass) noteGone(ctx context.Context, tx pgx.Tx, r table.Range) (operator.Removal, error) {
	if err := p.free(ctx, tx, r); err != nil {
		return operator.Removal{}, err
	}
	extent, err := p.pruning.Extent(ctx, tx, r)
	if err == nil && len(extent.Through) > 0 {
		p.report.Through = extent.Through[0]
	}
	return operator.Removal{Through: extent.Through, Rows: extent.Rows, Mode: string(ModeDrop)}, err
}

// free returns errNeeded if a process needs a row of the partition.
func (p *pass) free(ctx context.Context, tx pgx.Tx, r table.Range) error {
	stop, err := p.pruning.Needed(ctx, tx, r)
	if err != nil || stop == nil {
		return err
	}
	p.report.Holds = append(p.report.Holds, p.holds(stop)...)
	return errNeeded
}

// dropAtOnce detaches and drops in one transaction. It locks the whole table, but waits for that lock for 100 ms only.
func (p *pass) dropAtOnce(ctx context.Context, tx pgx.Tx, r table.Range) (operator.Removal, error) {
	if _, err := tx.Exec(ctx, p.pruning.DetachSQL(r), pgx.QueryExecModeExec); err != nil {
		return operator.Removal{}, err
	}
	return operator.Removal{}, p.finish(ctx, tx, r)
}

// finish drops a table that is no partition any more, if no process needs a row of it.
func (p *pass) finish(ctx context.Context, tx pgx.Tx, r table.Range) error {
	if err := p.free(ctx, tx, r); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "/* retention.drop */ DROP TABLE "+r.Table(), pgx.QueryExecModeExec)
	return err
}

// dropDetached detaches concurrently, which locks out neither readers nor writers of the table and waits for those
// that have begun. Then it asks again: a transaction that had written to the partition has committed by now. If a
// process needs a row of it, it is attached again.
func (p *pass) dropDetached(ctx context.Context, r table.Range) error {
	if err := p.Operator.Detach(ctx, p.pruning.Table(), p.pruning.DetachConcurrentlySQL(r)); err != nil {
		return err
	}
	needed := false
	err := p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (operator.Removal, error) {
		if _, err := tx.Exec(ctx, "/* retention.lock */ LOCK TABLE "+r.Table()+" IN ACCESS EXCLUSIVE MODE", pgx.QueryExecModeExec); err != nil {
			return operator.Removal{}, err
		}
		err := p.finish(ctx, tx, r)
		if errors.Is(err, errNeeded) {
			needed = true
			_, err = tx.Exec(ctx, r.Attach, pgx.QueryExecModeExec)
		}
		return operator.Removal{}, err
	})
	if err != nil {
		return fmt.Errorf("it is detached and not dropped, so no process reads it. No process needed a row of it: DROP TABLE %s; or, to keep it: %s: %w", visible.SQL(r.Table()), visible.SQL(r.Attach), err)
	}
	if needed {
		return errNeeded
	}
	return nil
}
