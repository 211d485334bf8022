package processor

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// peeked is a page, the position before it, and the epoch of the lease under which it may be delivered.
type peeked struct {
	Page
	after cursor.Position
	under cursor.Epoch
}

// peek looks for records after the row's position. A worker may not expect to deliver them, because another
// worker does or because they were waiting at the last look. Then it reads at most one.
func (p *Process) peek(ctx context.Context, row cursor.Row) (peeked, error) {
	limit := p.config.Batch
	if p.deliveredByAnother(row) || p.waiting {
		limit = 1
	}
	page, err := p.reader().read(ctx, row.Position, limit)
	if err != nil {
		return peeked{}, fmt.Errorf("read after position %q: %w", visible.Cut(string(row.Position)), err)
	}
	p.reader().noteLog(page)
	p.waiting = page.Waiting && len(page.Records) == 0 && page.Passed == ""
	return peeked{page, row.Position, p.next(row)}, nil
}

// next is the epoch of the lease that this worker gets if no operator comes in between: a take-over adds one.
func (p *Process) next(row cursor.Row) cursor.Epoch {
	if row.Holder == p.config.Store.Worker() {
		return row.Epoch
	}
	return row.Epoch + 1
}

// deliveredByAnother reports whether another worker delivered last.
func (p *Process) deliveredByAnother(row cursor.Row) bool {
	return row.Holder != "" && row.Holder != p.config.Store.Worker()
}

// othersTurn gives the worker that delivered last the first right to deliver new records, so that the epoch
// does not grow with every lull. If the cursor does not move for a quarter of a poll, that worker counts as
// gone.
func (p *Process) othersTurn(ctx context.Context, row cursor.Row) (bool, error) {
	if !p.deliveredByAnother(row) {
		return false, nil
	}
	wait(ctx, p.config.Poll/patienceFraction)
	now, err := p.config.Store.Look(ctx, p.config.Process)
	return now.Epoch != row.Epoch || now.Position != row.Position, err
}

// passing counts at how many looks a worker found the same rows to pass over.
type passing struct {
	at    cursor.Position
	looks int
}

// passPatience is for how many looks a worker leaves the rows that the source leaves out to the worker that
// delivered last, which passes over them within a poll.
const passPatience = 10

// othersToPass reports whether another worker should pass over the rows that were found, so that the epoch does
// not grow with every stretch without a record.
func (p *Process) othersToPass(row cursor.Row) bool {
	if p.passing.at != row.Position {
		p.passing = passing{at: row.Position}
	}
	p.passing.looks++
	return p.deliveredByAnother(row) && p.passing.looks <= passPatience
}
