package processor

import (
	"context"
	"math"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// doubt is about the first records behind a position: an earlier call may have
// handed them over, and nobody knows what came of it. Whatever moves the cursor
// elsewhere ends it, but for an advance past some of them.
type doubt struct {
	behind  cursor.Position
	records int
}

// at is how many records behind a position are in doubt.
func (d doubt) at(position cursor.Position) int {
	if d.behind != position {
		return 0
	}
	return d.records
}

// past is what is left of the doubt when the cursor has moved over n records.
func (d doubt) past(from, to cursor.Position, n int) doubt {
	if d.behind != from || d.records <= n {
		return doubt{}
	}
	return doubt{to, d.records - n}
}

// inherit is the doubt of a worker that comes after another one: that may have
// ended, or lost its lease, between a call and the advance behind it. So may
// have an earlier run of this program that called itself the same.
func (p *Process) inherit(row cursor.Row, lease *cursor.Lease) {
	untouched := row.Holder == "" && lease.Epoch() <= row.Epoch+1
	if (p.epoch == 0 || lease.Epoch() != row.Epoch) && !untouched && p.config.Dispatch.outlives {
		lost := p.numbers.Sequence - row.Sequence // by a promotion; the receiver may have all of them
		p.doubt = doubt{lease.Position(), max(p.config.Dispatch.chunk(p.config), int(min(lost, math.MaxInt32)))}
	}
}

// doubtful notes a call that ended without an outcome: by time-out, or because
// the lease or the process did. n of its records are acknowledged.
func (s *shift) doubtful(ds []Delivery, n int, failure error) {
	if failure == nil || !s.config.Dispatch.outlives {
		return
	}
	if context.Cause(s.sink) == nil && s.classOf(failure) != cursor.ClassUnknown && !outcome.IsOutage(failure) {
		return
	}
	called := n + 1
	if s.config.Dispatch.batch {
		called = len(ds)
	}
	if position := s.lease.Position(); called > s.doubt.at(position) {
		s.doubt = doubt{position, called}
	}
}
