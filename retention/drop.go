package retention

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	for _, r := range ranges { // first, since a partition that must stay ends the pass
		if !r.Over && r.Goes() { // keep is longer than it was
			if _, err := p.open(ctx, r); err != nil {
				return dropError(r, err)
			}
		}
	}
	for _, r := range ranges {
		gone, err := p.dropOne(ctx, r, detach)
		if err != nil {
			return dropError(r, err)
		}
		if gone {
			p.report.Partitions = append(p.report.Partitions, r.Name())
		} else if (r.Over || r.Detaching) && !r.Detached {
			return nil
		}
	}
	return nil
}

func dropError(r table.Range, err error) error {
	return fmt.Errorf("drop partition %s: %w", visible.Line(r.Name()), err)
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
		return p.finishDetach(ctx, r, detach)
	case !r.Over:
		return false, nil
	case !r.Closed:
		if closed, err := p.close(ctx, r); err != nil || !closed {
			return false, err
		}
	}
	return p.dropClosed(ctx, r, detach)
}

// previewDrop lists the partitions that drop would drop.
func (p *pass) previewDrop(ctx context.Context, tx pgx.Tx) error {
	all, err := p.list(ctx, tx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Detaching && !r.Closed {
			p.waitsForOperator(r)
			return nil
		}
		if !r.Over {
			if r.Detached {
				p.waits(r, p.left(r))
			}
			continue
		}
		free, err := p.free(ctx, tx, r)
		switch {
		case err != nil:
			return dropError(r, err)
		case free:
			p.report.Partitions = append(p.report.Partitions, r.Name())
		case !r.Detached:
			return nil
		}
	}
	return nil
}

// inTx runs f in a transaction in which no cursor moves back, with the positions of all cursors.
func (p *pass) inTx(ctx context.Context, f func(context.Context, pgx.Tx) (operator.Removal, error)) error {
	return p.Operator.Prune(ctx, p.pruning.Table(), p.Since, func(ctx context.Context, tx pgx.Tx, standing []operator.Standing) (operator.Removal, error) {
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
// first: the rows of one that ends in between are seen after that. A partition that is closed has no writers. It
// returns an error if PostgreSQL would refuse to detach or drop the partition.
func (p *pass) free(ctx context.Context, tx pgx.Tx, r table.Range) (bool, error) {
	if r.Closed {
		return p.spared(ctx, tx, r)
	}
	why, err := p.pruning.Obstacle(ctx, tx, r)
	if err == nil && why != "" {
		err = errors.New("it stays, and takes rows: " + visible.Line(why))
	}
	if err != nil {
		return false, err
	}
	writers, err := p.pruning.Writers(ctx, tx, r)
	if err != nil {
		return false, err
	}
	spared, err := p.spared(ctx, tx, r)
	if err != nil || !spared {
		return false, err
	}
	if len(writers) > 0 {
		p.waits(r, "an open transaction writes to it ("+writerName(writers[0])+")")
	}
	return len(writers) == 0, nil
}

// spared reports whether no process needs a row of the partition. It returns an error if it cannot read all of its rows.
func (p *pass) spared(ctx context.Context, tx pgx.Tx, r table.Range) (bool, error) {
	finalize, err := p.pruning.Torn(ctx, tx, r)
	if err == nil && finalize != "" {
		err = fmt.Errorf("a DETACH below it was begun and did not end, so the rows of that part are not read. To end it: %s", visible.SQL(finalize))
	}
	if err != nil {
		return false, err
	}
	stop, err := p.pruning.Needed(ctx, tx, r)
	if stop != nil {
		p.report.Holds = p.holds(stop)
	}
	return stop == nil && err == nil, err
}

func writerName(w table.Writer) string {
	if w.GID != "" {
		return fmt.Sprintf("prepared as %q", w.GID)
	}
	return fmt.Sprintf("pid %d", w.PID)
}

// lockSQL waits until no other session uses a partition, for 100 ms at most. While it is attached, all questions that
// may take long are asked before it.
const lockSQL = "/* retention.lock */ LOCK TABLE %s IN ACCESS EXCLUSIVE MODE"

// briefSQL bounds the statements after it, which wait for nothing but a lock.
const briefSQL = "/* retention.brief */ SET LOCAL statement_timeout = '1s'"

// close keeps writers out of a partition. DETACH … CONCURRENTLY alone would not do: it lets writers in until it has
// committed that the partition is no longer read, and a record that they write is passed as soon as they commit. The
// lock waits for writers, and lets no new one in until the constraint does that.
// TestPrune_APartitionThatAnOpenImportWritesToIsRead, TestPrune_NoTransactionBeginsToWriteToAPartitionThatIsToGo
func (p *pass) close(ctx context.Context, r table.Range) (closed bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		if free, err := p.free(ctx, tx, r); err != nil || !free { // a lock that is in vain would hold others up
			return none, err
		}
		now, err := p.alone(ctx, tx, r)
		switch {
		case err != nil:
			return none, err
		case now == nil || now.Detached || now.Detaching:
			p.waits(r, table.ErrOpened.Error())
			return none, nil
		case !now.Closed:
			err = execute(ctx, tx, p.pruning.CloseSQL(r)...)
		}
		closed = err == nil
		return none, err
	})
	return closed && err == nil, err
}

// alone locks a partition for a moment, and returns it as it is then.
func (p *pass) alone(ctx context.Context, tx pgx.Tx, r table.Range) (*table.Range, error) {
	if err := execute(ctx, tx, briefSQL, fmt.Sprintf(lockSQL, r.Table())); err != nil {
		return nil, err
	}
	return p.pruning.Again(ctx, tx, r)
}

// open lets writers into a partition again. It reports false, and does nothing, if the DETACH has begun. What cursors
// need does not matter to it.
func (p *pass) open(ctx context.Context, r table.Range) (open bool, err error) {
	err = p.Operator.Prune(ctx, p.pruning.Table(), math.MaxInt64, func(ctx context.Context, tx pgx.Tx, _ []operator.Standing) (none operator.Removal, err error) {
		now, err := p.alone(ctx, tx, r)
		if open = err == nil && now.Goes(); open {
			err = execute(ctx, tx, p.pruning.OpenSQL(r))
		}
		return none, err
	})
	return open && err == nil, err
}

// dropClosed drops a partition that is closed. If it does not, because a process needs the partition or the server
// refuses, it opens the partition.
func (p *pass) dropClosed(ctx context.Context, r table.Range, detach detach) (gone bool, err error) {
	if r.Plain {
		gone, err = p.dropAtOnce(ctx, r)
	} else if gone, err = p.confirm(ctx, r); err == nil && gone {
		err = p.pruning.WhileClosed(ctx, r, func(ctx context.Context) error {
			return detach(ctx, p.pruning.DetachSQL(r)+" CONCURRENTLY")
		})
	}
	switch {
	case err != nil || !gone:
		return false, p.reopen(ctx, r, err)
	case r.Plain:
		return true, nil
	}
	return p.dropDetached(ctx, r)
}

// reopen opens a partition that was closed, and not dropped for a reason; nil: a process needs it. If the DETACH has
// begun, or the partition cannot be opened now, the next pass goes on with it.
func (p *pass) reopen(ctx context.Context, r table.Range, reason error) error {
	open, err := p.open(ctx, r)
	switch {
	case errors.Is(reason, table.ErrOpened):
		p.waits(r, table.ErrOpened.Error())
		return err
	case reason == nil:
		return err
	case open:
		return fmt.Errorf("it is open again: %w", reason)
	}
	return fmt.Errorf("the next pass goes on with it: %w", errors.Join(reason, err))
}

// confirm asks about a partition once it is closed, and notes that its rows are gone: a seek back is refused from then
// on. So nothing changes the answer any more. Each row that was written before is visible now.
func (p *pass) confirm(ctx context.Context, r table.Range) (free bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (removal operator.Removal, err error) {
		if free, err = p.spared(ctx, tx, r); err == nil && free {
			removal, err = p.removal(ctx, tx, r)
		}
		return removal, err
	})
	return free, err
}

// removal is what goes with a partition.
func (p *pass) removal(ctx context.Context, tx pgx.Tx, r table.Range) (operator.Removal, error) {
	extent, err := p.pruning.Extent(ctx, tx, r)
	if err == nil && len(extent.Through) > 0 {
		p.report.Through = extent.Through[p.pruning.Ordering()]
	}
	return p.noted(extent), err
}

// dropAtOnce detaches and drops in one transaction. It locks the whole table, but waits for that lock for 100 ms only,
// and asks before it has the lock: the partition is closed, so no row comes later.
func (p *pass) dropAtOnce(ctx context.Context, r table.Range) (gone bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (removal operator.Removal, err error) {
		if gone, err = p.spared(ctx, tx, r); err != nil || !gone {
			return removal, err
		}
		if removal, err = p.removal(ctx, tx, r); err != nil {
			return removal, err
		}
		if err = execute(ctx, tx, briefSQL, p.pruning.DetachSQL(r)); err != nil {
			return removal, err
		}
		now, err := p.pruning.Again(ctx, tx, r)
		if err == nil && (now == nil || !now.Closed) {
			err = table.ErrOpened
		}
		if err == nil {
			err = execute(ctx, tx, dropSQL(r))
		}
		return removal, err
	})
	return gone, err
}

// finishDetach ends the DETACH that an earlier pass has begun, unless another session has ended it, or opened the
// partition.
func (p *pass) finishDetach(ctx context.Context, r table.Range, detach detach) (gone bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		now, err := p.pruning.Again(ctx, tx, r)
		if err == nil && (now == nil || !now.Closed || !now.Detaching) {
			err = table.ErrOpened
		}
		return none, err
	})
	if errors.Is(err, table.ErrOpened) {
		p.waits(r, table.ErrOpened.Error())
		return false, nil
	}
	if err == nil {
		err = detach(ctx, p.pruning.DetachSQL(r)+" FINALIZE")
	}
	if err != nil {
		return false, fmt.Errorf("its DETACH has begun, so no process reads it: the next pass goes on with it: %w", err)
	}
	return p.dropDetached(ctx, r)
}

// dropDetached drops a table that was a partition. If a process needs a row of it after all, because an operator has
// moved its cursor back with --pruned, or if keep is longer than it was, the partition is attached again.
func (p *pass) dropDetached(ctx context.Context, r table.Range) (gone bool, err error) {
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		if err := execute(ctx, tx, fmt.Sprintf(lockSQL, r.Table())); err != nil {
			return none, err
		}
		now, err := p.pruning.Again(ctx, tx, r)
		if err == nil && (now == nil || !now.Closed || !now.Detached) {
			p.waits(r, table.ErrOpened.Error())
			return none, nil
		}
		free := false
		if err == nil && r.Over {
			free, err = p.spared(ctx, tx, r)
		}
		switch {
		case err != nil:
			return none, err
		case free:
			gone = true
			return none, execute(ctx, tx, dropSQL(r))
		case r.Attach == "":
			p.waits(r, p.left(r))
			return none, nil
		default:
			return none, execute(ctx, tx, p.pruning.OpenSQL(r), r.Attach)
		}
	})
	if err != nil {
		return false, fmt.Errorf("it is detached, and no process reads it. The next pass drops it; to keep it: %s: %w", visible.SQL(p.pruning.OpenSQL(r)), err)
	}
	return gone, nil
}

// left describes a table that is detached and must stay.
func (p *pass) left(r table.Range) string {
	why := "a process needs a row of it"
	if !r.Over {
		why = "it has rows that are younger than keep"
	}
	return fmt.Sprintf("it is detached, and %s. Attach it again: %s; then ALTER TABLE %s ATTACH PARTITION %s FOR VALUES …", why, p.pruning.OpenSQL(r), visible.SQL(p.pruning.Table()), visible.SQL(r.Table()))
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
