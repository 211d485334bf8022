package desk

import (
	"cmp"
	"context"
)

// Tail are the records that a process delivered after a position, the oldest first.
type Tail struct {
	Records []Record `json:"records"`
	// Next is the position to ask from next.
	Next string `json:"next"`
	// More reports that there are more than were asked for: those in between were left out.
	More bool `json:"more"`
	// Problem is why the last look failed: then the records may be old. "" if it did not.
	Problem string `json:"problem,omitempty"`
}

// MaxTail bounds the number of records of one Tail.
const MaxTail = 100

// Tail returns the last records, at most limit, that a process has delivered after a position; "" begins now, with the
// last ones. They come without headers and payload.
func (d *Desk) Tail(ctx context.Context, process, after string, limit int) (Tail, error) {
	if _, err := d.Process(ctx, process, Masked); err != nil {
		return Tail{}, err
	}
	return d.board.tail(process, after, min(max(limit, 1), MaxTail)), nil
}

func (b *board) tail(process, after string, limit int) Tail {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := Tail{Records: []Record{}, Next: after, Problem: b.problem}
	m := b.memories[process]
	if m == nil {
		return t
	}
	for _, r := range m.detail.tail {
		if after == "" || r.Position > after || after > string(m.tailTo) { // after: from before a seek back
			t.Records = append(t.Records, r)
		}
	}
	if t.Next = cmp.Or(string(m.tailTo), after); len(t.Records) > limit {
		t.Records, t.More = t.Records[len(t.Records)-limit:], true
	}
	return t
}
