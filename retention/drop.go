package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// detach runs a statement that detaches a partition, in the session that alone may do so.
type detach func(ctx context.Context, statement string) error

// drop drops the partitions whose range is over, the oldest first, up to one that must stay. It begins with what an
// earlier pass has left: tables that are detached and not dropped, and the partition whose DETACH did not end.
func (p *pass) drop(ctx context.Context) error {
	all, err := p.partitions(ctx)
	if err != nil || !slices.ContainsFunc(all, func(r table.Range) bool { return r.Over || r.Closed || r.Detaching }) {
		return err
	}
	return p.Operator.Drop(ctx, p.pruning.Table(), func(ctx context.Context, session func(context.Context, string) error) error {
		all, err := p.partitions(ctx) // another session may have dropped some of them
		if err != nil {
			return err
		}
		return p.dropAll(ctx, all, session)
	})
}

// partitions lists the tables that were partitions, and then the partitions, in the order in which they go.
func (p *pass) partitions(ctx context.Context) (all []table.Range, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		all, err = p.list(ctx, tx)
		return none, err
	})
	return all, err
}

func (p *pass) list(ctx context.Context, tx pgx.Tx) ([]table.Range, error) {
	left, err := p.pruning.Left(ctx, tx)
	if err != nil {
		return nil, err
	}
	ranges, err := p.pruning.Ranges(ctx, tx)
	return append(left, ranges...), err
}

func (p *pass) dropAll(ctx context.Context, ranges []table.Range, detach detach) error {
	for _, r := range ranges {
		gone, err := p.dropOne(ctx, r, detach)
		if err != nil {
			return fmt.Errorf("drop partition %s: %w", visible.Line(r.Name()), err)
		}
		if gone {
			p.report.Partitions = append(p.report.Partitions, r.Name())
		} else if r.Over || r.Detaching {
			return nil
		}
	}
	return nil
}

// dropOne takes a partition on from where an earlier pass has left it, and reports whether it is dropped.
func (p *pass) dropOne(ctx context.Context, r table.Range, detach detach) (gone bool, err error) {
	switch {
	case r.Detaching && !r.Closed: // perhaps by an operator who wants to keep it
		p.waitsForOperator(r)
		return false, nil
	case r.Detached:
		return p.dropDetached(ctx, r)
	case r.Detaching:
		return p.detachAndDrop(ctx, r, detach, p.pruning.DetachSQL(r)+" FINALIZE")
	case !r.Over && r.Closed: // keep is longer than it was
		return false, p.open(ctx, r)
	case !r.Over:
		return false, nil
	case r.Plain:
		return p.dropAtOnce(ctx, r)
	}
	if gone, err = p.close(ctx, r); err != nil || !gone {
		return false, err
	}
	return p.detachAndDrop(ctx, r, detach, p.pruning.DetachSQL(r)+" CONCURRENTLY")
}

// previewDrop lists the partitions that drop would drop.
func (p *pass) previewDrop(ctx context.Context, tx pgx.Tx) error {
	all, err := p.list(ctx, tx)
	for _, r := range all {
		if err != nil || !r.Over && !r.Detaching && !r.Detached {
			continue
		}
		if r.Detaching && !r.Closed {
			p.waitsForOperator(r)
			break
		}
		var free bool
		if free, err = p.free(ctx, tx, r); err == nil && free {
			p.report.Partitions = append(p.report.Partitions, r.Name())
		} else if !r.Detached {
			break
		}
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

// waits reports why a partition cannot go yet.
func (p *pass) waits(r table.Range, why string) {
	p.report.Waiting = append(p.report.Waiting, r.Name()+": "+why)
}

// waitsForOperator reports a DETACH that is not ours.
func (p *pass) waitsForOperator(r table.Range) {
	p.waits(r, fmt.Sprintf("a DETACH was begun and did not end, so no process reads it. To end it: %s FINALIZE", p.pruning.DetachSQL(r)))
}

// free reports whether no process needs a row of the partition, and no open transaction writes to it. The writers come
// first: the rows of one that ends in between are seen after that.
func (p *pass) free(ctx context.Context, tx pgx.Tx, r table.Range) (bool, error) {
	writers, err := p.pruning.Writers(ctx, tx, r)
	if err != nil {
		return false, err
	}
	stop, err := p.pruning.Needed(ctx, tx, r)
	if err != nil {
		return false, err
	}
	if stop != nil {
		p.report.Holds = p.holds(stop)
	} else if len(writers) > 0 {
		p.waits(r, "an open transaction writes to it ("+writerName(writers[0])+")")
	}
	return stop == nil && len(writers) == 0, nil
}

func writerName(w table.Writer) string {
	if w.GID != "" {
		return fmt.Sprintf("prepared as %q", w.GID)
	}
	return fmt.Sprintf("pid %d", w.PID)
}

// close keeps writers out of a partition for good, if it is free, and notes that its rows are gone: a seek back is
// refused from then on. So nothing changes the answer any more. DETACH … CONCURRENTLY alone would not do: it lets
// writers in until it has committed that the partition is no longer read, and a record that they write is passed as
// soon as they commit. The lock waits for writers, and lets no new one in until the constraint does that.
// TestPrune_APartitionThatAnOpenImportWritesToIsRead, TestPrune_NoTransactionBeginsToWriteToAPartitionThatIsToGo
func (p *pass) close(ctx context.Context, r table.Range) (free bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		if free, err = p.free(ctx, tx, r); err == nil && free { // a lock that is in vain would hold others up
			free, err = p.lockFree(ctx, tx, r)
		}
		switch {
		case err != nil:
			return none, err
		case free:
			return p.closeNow(ctx, tx, r)
		case r.Closed: // a cursor has gone back to it
			return none, execute(ctx, tx, p.pruning.OpenSQL(r))
		default:
			return none, nil
		}
	})
	return free, err
}

// lockFree is free under a lock that keeps all others out: what was written before it is visible to the question.
func (p *pass) lockFree(ctx context.Context, tx pgx.Tx, r table.Range) (bool, error) {
	if err := execute(ctx, tx, "/* retention.lock */ LOCK TABLE "+r.Table()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return false, err
	}
	return p.free(ctx, tx, r)
}

func (p *pass) closeNow(ctx context.Context, tx pgx.Tx, r table.Range) (operator.Removal, error) {
	if !r.Closed {
		if err := execute(ctx, tx, p.pruning.CloseSQL(r)...); err != nil {
			return operator.Removal{}, err
		}
	}
	return p.removal(ctx, tx, r)
}

// removal is what goes with a partition.
func (p *pass) removal(ctx context.Context, tx pgx.Tx, r table.Range) (operator.Removal, error) {
	extent, err := p.pruning.Extent(ctx, tx, r)
	if err == nil && len(extent.Through) > 0 {
		p.report.Through = extent.Through[0]
	}
	return p.noted(extent), err
}

// open lets writers into a partition again.
func (p *pass) open(ctx context.Context, r table.Range) error {
	return p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		return none, execute(ctx, tx, p.pruning.OpenSQL(r))
	})
}

// dropAtOnce detaches and drops in one transaction. It locks the whole table, but waits for that lock for 100 ms only.
// The lock waits for all writers, so their rows are visible to the question after it.
func (p *pass) dropAtOnce(ctx context.Context, r table.Range) (free bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (removal operator.Removal, err error) {
		if free, err = p.free(ctx, tx, r); err != nil || !free {
			return removal, err
		}
		if err = execute(ctx, tx, p.pruning.DetachSQL(r)); err != nil {
			return removal, err
		}
		if free, err = p.free(ctx, tx, r); err == nil && !free {
			err = errStays
		}
		if err == nil {
			removal, err = p.removal(ctx, tx, r)
		}
		if err == nil {
			err = execute(ctx, tx, dropSQL(r))
		}
		return removal, err
	})
	if errors.Is(err, errStays) {
		err = nil
	}
	return free && err == nil, err
}

// errStays undoes a transaction that has detached a partition.
var errStays = errors.New("the partition stays")

// detachAndDrop drops a partition that is closed. To detach it concurrently locks out neither readers nor writers of
// the table, and waits for those that have begun. What fails or is interrupted is taken up by the next pass.
func (p *pass) detachAndDrop(ctx context.Context, r table.Range, detach detach, statement string) (gone bool, err error) {
	if err := detach(ctx, statement); err != nil {
		return false, fmt.Errorf("no process needs a row of it, and no writer is let in: the next pass goes on with it: %w", err)
	}
	r.Detached = true
	return p.dropDetached(ctx, r)
}

// dropDetached drops a table that was a partition. If a process needs a row of it after all, because an operator has
// moved its cursor back with --pruned, the partition is attached again.
func (p *pass) dropDetached(ctx context.Context, r table.Range) (free bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		free, err = p.lockFree(ctx, tx, r)
		switch {
		case err != nil:
			return none, err
		case free:
			return none, execute(ctx, tx, dropSQL(r))
		case r.Attach == "":
			p.waits(r, fmt.Sprintf("it is detached, and a process needs a row of it. Attach it again: %s; then ALTER TABLE %s ATTACH PARTITION %s FOR VALUES …", p.pruning.OpenSQL(r), visible.SQL(p.pruning.Table()), visible.SQL(r.Table())))
			return none, nil
		default:
			return none, execute(ctx, tx, p.pruning.OpenSQL(r), r.Attach)
		}
	})
	if err != nil {
		return false, fmt.Errorf("it is detached, and no process reads it. The next pass drops it; to keep it: %s: %w", visible.SQL(p.pruning.OpenSQL(r)), err)
	}
	return free, nil
}

func dropSQL(r table.Range) string { return "/* retention.drop */ DROP TABLE " + r.Table() }

// execute runs statements without parameters.
func execute(ctx context.Context, tx pgx.Tx, statements ...string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeExec); err != nil {
			return err
		}
	}
	return nil
}
