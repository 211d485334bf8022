package processor

import (
	"context"
	"math"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// doubt counts the first records after a position whose outcome is unknown: an earlier call may have handed
// them over. Any move of the cursor ends the doubt, except an advance past some of them.
type doubt struct {
	behind  cursor.Position
	records int
}

// at is how many records after a position are in doubt.
func (d doubt) at(position cursor.Position) int {
	if d.behind != position {
		return 0
	}
	return d.records
}

// past is the rest of the doubt after the cursor has moved over n records.
func (d doubt) past(from, to cursor.Position, n int) doubt {
	if d.behind != from || d.records <= n {
		return doubt{}
	}
	return doubt{to, d.records - n}
}

// inherit sets the doubt of a worker that comes after another one. The earlier worker may have ended, or lost
// its lease, between a call and the advance after it. So may an earlier run of this program under the same
// name.
func (p *Process) inherit(row cursor.Row, lease *cursor.Lease) {
	untouched := row.Holder == "" && lease.Epoch() <= row.Epoch+1
	if (p.epoch == 0 || lease.Epoch() != row.Epoch) && !untouched && p.config.Dispatch.outlives {
		lost := p.numbers.Sequence - row.Sequence // lost by a promotion; the receiver may have all of them
		p.doubt = doubt{lease.Position(), max(p.config.Dispatch.chunk(p.config), int(min(lost, math.MaxInt32)))}
	}
}

// doubtful notes a call that ended without an outcome: by time-out, or because the lease or the process ended.
// n of its records are acknowledged.
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
