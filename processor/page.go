package processor

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// read reads a page and checks that the source keeps its contract.
func (p *Process) read(ctx context.Context, after cursor.Position, limit int) (Page, error) {
	if err := p.clock.err(after); err != nil {
		return Page{}, err
	}
	page, err := p.config.Source.Read(ctx, after, limit)
	if err != nil {
		return Page{}, err
	}
	if err := page.check(after); err != nil {
		return Page{}, err
	}
	if n := len(page.Records); n > 0 {
		after = page.Records[n-1].Position
	}
	p.clock.past(max(after, page.Passed))
	return page, nil
}

// check reports a position that does not grow. The cursor could not advance to it, or would pass over a record.
func (page Page) check(after cursor.Position) error {
	for i := range page.Records {
		r := &page.Records[i]
		if r.Position <= after {
			return Permanent(fmt.Errorf("%w: record %s is at %q, after %q", ErrOrder, visible.Cut(r.ID), visible.Cut(string(r.Position)), visible.Cut(string(after))))
		}
		after = r.Position
	}
	if page.Passed != "" && (page.Passed <= after || len(page.Records) > 0) {
		return Permanent(fmt.Errorf("%w: it passed over everything up to %q, after %q", ErrOrder, page.Passed, after))
	}
	return nil
}

// passOver durably moves the cursor over rows among which there is no record. It takes no sequence. If it
// fails, it is not owed: the source finds the same again.
func (s *shift) passOver(to cursor.Position) error {
	if err := s.writeOff(s.sent.gone(s.lease.Position(), to, true)); err != nil || s.lease.Position() == to {
		return err
	}
	from, before := s.lease.Position(), s.bridge.before(s.lease)
	if err := s.lease.Advance(context.WithoutCancel(s.run), to, 0); err != nil {
		return err
	}
	s.doubt = s.doubt.past(from, to, 0)
	s.sent.past(from, to)
	s.bridge = bridge{epoch: s.lease.Epoch(), from: before, to: to}
	s.log.Debug("passed over rows that the source leaves out", "position", visible.Cut(string(to)))
	return context.Cause(s.lease.Context())
}

// bridge is a stretch that the cursor has passed without a record, or with records that are gone.
// Delivery.After names a position before it.
type bridge struct {
	epoch    cursor.Epoch
	from, to cursor.Position
}

// before is the position of the record before the lease's position.
func (b bridge) before(lease *cursor.Lease) cursor.Position {
	if position := lease.Position(); b.to != position || b.epoch != lease.Epoch() {
		return position
	}
	return b.from
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
	return p.anothers(row) && p.passing.looks <= passPatience
}
