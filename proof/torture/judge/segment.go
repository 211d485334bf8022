package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// segment is a stretch of a process between two decisions of an operator that move its cursor. Order and completeness are
// promised within it. A sequence tells which one an attempt belongs to, since each seek leaves a gap in them.
type segment struct {
	after    int           // the row behind which it begins
	end      int           // the row at which the next decision found the cursor; the last one ends with the table
	sequence int64         // at its beginning
	from     time.Duration // when the decision was made
}

// expected is the sequence of a row.
func (s *segment) expected(rank int) int64 { return s.sequence + int64(rank-s.after) }

// Actions of an operator that move the cursor.
const (
	seek = "seek"
	skip = "skip"
)

// split cuts the moves where an operator moved the cursor.
func (f *feed) split() []*segment {
	last := &segment{end: len(f.table.rows)}
	all := []*segment{last}
	for _, m := range f.moves {
		if f.did(m, seek) || f.did(m, skip) {
			last.end = f.table.place(m.From.Position)
			last = &segment{after: f.table.place(m.To.Position), end: len(f.table.rows), sequence: m.To.Sequence, from: m.T}
			all = append(all, last)
		}
	}
	return all
}

// did reports whether the audit has an action for a move.
func (f *feed) did(m history.Move, kind string) bool {
	for _, a := range f.actions[m.Tx] {
		if a.Kind == kind {
			return true
		}
	}
	return false
}

// segment returns the one that a sequence belongs to. There are few.
func (f *feed) segment(sequence int64) *segment {
	for i := len(f.segments) - 1; i > 0; i-- {
		if sequence > f.segments[i].sequence {
			return f.segments[i]
		}
	}
	return f.segments[0]
}
