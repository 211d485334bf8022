package daemon

import (
	"context"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// trailRows is how many rows before a cursor a trail holds.
	trailRows = 2000
	// maxLate bounds how many late records one look finds, and maxLateSaid how many of them it logs.
	maxLate     = 1000
	maxLateSaid = 10
)

// trail is the list of records before a cursor at one moment, delivered or passed over. If a record is in that range
// later and was not there then, it is late: it is never read.
type trail struct {
	after, upTo cursor.Position
	known       map[cursor.Position]bool
}

// newTrail notes the last rows up to the cursor. Records that came late before that moment are among them.
func newTrail(ctx context.Context, source *table.Source, at cursor.Position) (trail, error) {
	t := trail{upTo: at, known: map[cursor.Position]bool{}}
	if at == "" {
		return t, nil
	}
	var err error
	if t.after, err = source.Back(ctx, at, trailRows); err != nil {
		return trail{}, err
	}
	span, err := source.Between(ctx, t.after, at, trailRows+maxLate)
	if err != nil {
		return trail{}, err
	}
	for _, r := range span.Records {
		t.known[r.Position] = true
	}
	if n := len(span.Records); n == trailRows+maxLate { // so many have come that the end was cut off
		t.upTo = span.Records[n-1].Position
	}
	return t, nil
}

// late returns the records that have joined a trail. An operator may have moved the cursor back: the records after it
// are read again, so they do not count.
func (t trail) late(ctx context.Context, source *table.Source, at cursor.Position) ([]processor.Record, error) {
	span, err := source.Between(ctx, t.after, min(t.upTo, at), trailRows+maxLate)
	return slices.DeleteFunc(span.Records, func(r processor.Record) bool { return t.known[r.Position] }), err
}

// step takes a new trail, and returns the records that have joined the old one. It reads the new trail first. A
// record that comes between the two counts now, and a later one counts the next time.
func (t trail) step(ctx context.Context, source *table.Source, at cursor.Position) (trail, []processor.Record, error) {
	next, err := newTrail(ctx, source, at)
	if err != nil {
		return trail{}, nil, err
	}
	late, err := t.late(ctx, source, at)
	if err != nil {
		return trail{}, nil, err
	}
	for _, r := range late {
		next.known[r.Position] = true
	}
	return next, late, nil
}

// watch looks for records that appeared before the cursor since the last round. If a question fails, it is not made
// up for: the trail begins anew.
func (c *counter) watch(ctx context.Context, w watched, at cursor.Position) {
	next, late, err := c.trails[w.Name].step(ctx, w.count, at)
	c.trails[w.Name] = next
	if err != nil {
		return
	}
	c.metrics.Late(w.Name, len(late))
	for _, r := range late[:min(len(late), maxLateSaid)] {
		c.log.Error("a record came behind the cursor, where nothing is read: its stamp was not made as it was inserted, or an update has made it one that source.where takes; "+
			"deliver it by hand, or seek back to it",
			"process", w.Name, "record_id", visible.Cut(r.ID), "position", visible.Cut(string(r.Position)))
	}
	if more := len(late) - maxLateSaid; more > 0 {
		c.log.Error("more records came behind the cursor", "process", w.Name, "records", more)
	}
}
