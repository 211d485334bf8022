package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// reader reads pages for a process and for its shifts. It checks that the source keeps its contract, and that
// nothing is read behind the server's clock or on another server.
type reader struct {
	source  Source
	store   *cursor.Store
	clock   *clockWatch
	numbers *cursor.Seen // the highest of the cursor
}

// reader returns the reader of the process.
func (p *Process) reader() reader {
	return reader{source: p.config.Source, store: p.config.Store, clock: &p.clock, numbers: &p.seen}
}

// together reports whether the source reads through the pool of the store, and so from the store's server.
func (r reader) together() bool {
	s, ok := r.source.(Pooled)
	return !ok || s.Pool() == r.store.Pool()
}

// together reports whether the process reads from the server that holds its cursor.
func (p *Process) together() bool { return p.reader().together() }

// read reads a page and checks that the source keeps its contract.
func (r reader) read(ctx context.Context, after cursor.Position, limit int) (Page, error) {
	if err := r.clock.err(after); err != nil {
		return Page{}, err
	}
	page, err := r.source.Read(ctx, after, limit)
	if err != nil {
		return Page{}, err
	}
	if err := page.check(after); err != nil {
		return Page{}, err
	}
	if n := len(page.Records); n > 0 {
		after = page.Records[n-1].Position
	}
	r.clock.past(max(after, page.Passed))
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

// noteLog keeps how much of the log the server's disk has.
func (r reader) noteLog(page Page) {
	if r.together() {
		*r.numbers = r.numbers.Kept(page.Server, page.Log)
	}
}

// onServer checks that a page was read on the lease's server. An address may have moved while old connections
// stay; then nothing of the page is delivered.
func (r reader) onServer(lease *cursor.Lease, page Page) error {
	if !r.together() {
		return nil
	}
	return r.store.Elsewhere(lease.Server(), page.Server)
}

// ofServer checks whether a sequence of ids before the cursor is another server's, and returns ErrElsewhere if
// so: an address may have moved. The advice to set the sequence would be wrong on both servers, and the row on
// the one shows nothing about the position on the other.
func (r reader) ofServer(err error) error {
	var sequence *SequenceError
	if !errors.As(err, &sequence) || !r.together() {
		return err
	}
	if elsewhere := r.store.Elsewhere(r.numbers.Server(), sequence.Server); elsewhere != nil {
		return elsewhere
	}
	return err
}
