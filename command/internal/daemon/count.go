package daemon

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// The pause between two rounds of counting is countFactor times the duration of the last round. So counting is a
// small part of the load. The pause is at least one interval of the looks, and at most maxCountIntervals of them, so
// that the lag is never old.
const (
	countFactor       = 20
	maxCountIntervals = 12
)

// counter counts, again and again, the records that wait after each cursor. It also looks for records that appeared
// before a cursor after the cursor had passed.
type counter struct {
	store   *cursor.Store
	watched map[string]watched // by process
	metrics *metrics.Metrics
	log     *slog.Logger
	every   time.Duration
	logged  problems         // of a lag by its process, of the dead letters by ""
	trails  map[string]trail // by process
	absent  bool             // a row could not be read in the last round
}

// run counts until ctx ends.
func (c *counter) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		c.absent = false
		for _, w := range c.watched {
			c.count(ctx, w)
		}
		c.letters(ctx)
		pause(ctx, c.interval(time.Since(began)))
	}
}

func (c *counter) interval(took time.Duration) time.Duration {
	if c.absent {
		return min(awayInterval, c.every)
	}
	return min(max(c.every, countFactor*took), maxCountIntervals*c.every)
}

// count updates the metrics with the lag of one process. If its row cannot be read, the looker reports that.
func (c *counter) count(ctx context.Context, w watched) {
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	row, err := c.store.Look(asking, w.Name)
	if err != nil {
		c.absent = true
		return
	}
	c.watch(asking, w, row.Position)
	lag, err := w.count.Lag(asking, row.Position)
	err = answer.Overdue(ctx, asking, answer.FromDatabase, lookTimeout, err)
	if ctx.Err() != nil {
		return
	}
	c.note(w.Name, err)
	if err != nil {
		c.metrics.NoLag(w.Name)
		return
	}
	c.metrics.Lag(w.Name, lag)
}

// note logs a problem if it differs from the last one.
func (c *counter) note(process string, err error) {
	if c.logged.changes(process, err) && err != nil {
		c.log.Warn("the lag cannot be counted: the metrics leave it out", "process", process, "err", err)
	}
}

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
		c.log.Error("a record appeared before the cursor, where nothing is read: it was stamped before its insert, or an UPDATE made source.where true for it; "+
			"deliver it by hand, or seek back to it",
			"process", w.Name, "record_id", visible.Cut(r.ID), "position", visible.Cut(string(r.Position)))
	}
	if more := len(late) - maxLateSaid; more > 0 {
		c.log.Error("more records appeared before the cursor", "process", w.Name, "records", more)
	}
}
