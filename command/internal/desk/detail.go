package desk

import (
	"context"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	historyShown = 50               // events of one process
	historyAge   = 10 * time.Second // after which the history is read again, even if nothing seems to have changed
	firstTail    = 20               // records that were delivered before somebody began to look
	maxTailKept  = 2 * MaxTail
)

// detail is what the board knows only of a process that somebody looks at closely.
type detail struct {
	detailAt    time.Time // zero: nobody ever looked
	head        *Record   // with its contents: an answer masks it
	headProblem string    // see Process.HeadProblem
	points      []Point

	history   []Event
	historyAt time.Time
	ofState   cursor.State // those of the row when the history was read
	ofEpoch   cursor.Epoch

	tail     []Record
	tailTo   cursor.Position // up to which the tail goes
	tailFull bool            // the tail has begun
}

// noteDetail reads the records and the history of one process. Its problems are shown beside what could be read.
func (b *board) noteDetail(ctx context.Context, process string) {
	b.mu.Lock()
	m := b.memories[process]
	if m == nil {
		b.mu.Unlock()
		return
	}
	row, was := m.row, m.detail
	b.mu.Unlock()

	now := b.readDetail(ctx, row, was)
	b.mu.Lock()
	defer b.mu.Unlock()
	now.points = m.points
	if m.nudge > b.before {
		now.detailAt, now.historyAt = time.Time{}, time.Time{}
	}
	m.detail = now
}

func (b *board) readDetail(ctx context.Context, row cursor.Row, d detail) detail {
	source, err := b.reader.Source(row.Process)
	d.head, d.headProblem = nil, ""
	if err == nil && source != nil && row.Position != cursor.Unplaced {
		d, err = d.read(ctx, source, b.reader.Operator(), row)
	}
	if err != nil {
		d.headProblem = b.clean(err)
	}
	if time.Since(d.historyAt) > historyAge || d.ofState != row.State || d.ofEpoch != row.Epoch {
		events, err := b.reader.Operator().History(ctx, row.Process, historyShown)
		if err == nil {
			d.history, d.historyAt, d.ofState, d.ofEpoch = eventsOf(events), time.Now(), row.State, row.Epoch
		} else if d.headProblem == "" {
			d.headProblem = b.clean(err)
		}
	}
	d.detailAt = time.Now()
	return d
}

// read reads the record at the head, and those that were delivered since the last look.
func (d detail) read(ctx context.Context, source *table.Source, op *operator.Operator, row cursor.Row) (detail, error) {
	heads, err := source.Peek(ctx, row.Position, 1, MaxPayload)
	if err != nil {
		return d, err
	}
	if len(heads) > 0 {
		head := recordOf(heads[0], row)
		d.head = &head
	}
	switch {
	case row.UpdatedAt.IsZero(): // it has no row yet
		return d, nil
	case d.tailFull && row.Position == d.tailTo:
		return d, nil
	case d.tailFull && row.Position < d.tailTo: // after a seek back
		d.tail, d.tailFull = nil, false
	}
	passage, err := op.Since(ctx, row.Process, 0)
	if err != nil {
		return d, err
	}
	limit, floor := int64(firstTail), passage.Floor
	if d.tailFull {
		limit, floor = MaxTail, max(floor, d.tailTo)
	}
	d.tail = slices.Clone(d.tail) // an answer may still use it
	if floor < row.Position {
		from, _, err := source.Recent(ctx, row.Position, limit, floor)
		if err != nil {
			return d, err
		}
		records, err := source.Peek(ctx, from, int(limit), 0)
		if err != nil {
			return d, err
		}
		for _, r := range records {
			if r.Position <= row.Position && passage.Fate(r.Position).Delivered {
				d.tail = append(d.tail, masked(recordOf(r, row)))
			}
		}
	}
	if len(d.tail) > maxTailKept {
		d.tail = slices.Delete(d.tail, 0, len(d.tail)-maxTailKept)
	}
	d.tailTo, d.tailFull = row.Position, true
	return d, nil
}

func eventsOf(events []operator.Event) []Event {
	all := make([]Event, 0, len(events))
	for _, e := range events {
		all = append(all, eventOf(e))
	}
	return all
}
