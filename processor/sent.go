package processor

import (
	"context"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// sent are the records after a position that went out with their numbers, in order. Each number belongs to its
// record for good. If the record is gone at the next read, because its row was deleted for example, the next
// record must not get its number. A receiver that drops every number not above the last one would drop that
// record.
type sent struct {
	behind    cursor.Position
	sequence  int64 // before the first of them
	positions []cursor.Position
}

// note keeps the records that are handed over now.
func (t *sent) note(behind cursor.Position, ds []Delivery) {
	t.behind, t.sequence, t.positions = behind, ds[0].Sequence-1, t.positions[:0]
	for i := range ds {
		t.positions = append(t.positions, ds[i].Position)
	}
}

// recall compares sent with the row. If the cursor was moved over some of these records, as by an operator who
// skips one, the numbers of the rest still hold. Otherwise recall takes over the failing record from the row.
// Another worker, or an earlier run of this one, wrote it there.
func (t *sent) recall(behind cursor.Position, sequence int64, f *cursor.Failure) {
	if t.sequence+int64(t.before(behind, true)) == sequence && t.behind <= behind {
		t.past(t.behind, behind)
	} else {
		t.positions = t.positions[:0]
	}
	if len(t.positions) > 0 {
		return // the failing record is one of these
	}
	t.behind, t.sequence = behind, sequence
	if f != nil && f.Position > behind && f.Class != cursor.ClassUnreadable {
		t.positions = append(t.positions, f.Position)
	}
}

// past keeps those that the cursor has not passed, now that it is somewhere else.
func (t *sent) past(from, to cursor.Position) {
	if t.behind != from {
		t.positions = t.positions[:0]
	}
	n := t.before(to, true)
	t.behind, t.sequence, t.positions = to, t.sequence+int64(n), slices.Delete(t.positions, 0, n)
}

// before counts those before a position or, if inclusive, up to it.
func (t *sent) before(position cursor.Position, inclusive bool) int {
	n, found := slices.BinarySearch(t.positions, position)
	if found && inclusive {
		n++
	}
	return n
}

// gone counts those that no longer exist: the next record is one after them or, with all, there is none up to
// that position.
func (t *sent) gone(behind, next cursor.Position, all bool) int {
	if t.behind != behind {
		return 0
	}
	return t.before(next, all)
}

// whole is how many of n records go out together: up to the first one after which one is gone.
func (t *sent) whole(behind cursor.Position, records []Record, n int) int {
	if t.behind != behind {
		return n
	}
	for i := 1; i < min(n, len(t.positions)); i++ {
		if records[i].Position != t.positions[i] {
			return i
		}
	}
	return n
}

// handedOver notes which records of a call went out, n of which are acknowledged. Effects in the cursor's own
// transaction are undone with it.
func (s *shift) handedOver(position cursor.Position, ds []Delivery, n int, failure error) {
	if !s.config.Dispatch.outlives || ds[0].Fault != nil {
		return
	}
	called := n
	if failure != nil {
		called = n + 1
	}
	if failure != nil && s.config.Dispatch.batch {
		called = len(ds)
	}
	if called == 0 {
		return // the process began to end before the first call
	}
	if s.sent.behind != position || called >= len(s.sent.positions) {
		s.sent.note(position, ds[:called])
	}
}

// writeOff durably moves the cursor over the first n records that were sent and are gone. They keep their
// numbers, like a record that an operator skips. Delivery.After names a position before them: a receiver that
// never had them has missed no record that exists.
func (s *shift) writeOff(n int) error {
	if n == 0 {
		return nil
	}
	from, to, before := s.lease.Position(), s.sent.positions[n-1], s.bridge.before(s.lease)
	if err := s.lease.WriteOff(context.WithoutCancel(s.run), to, int64(n)); err != nil {
		return err
	}
	s.sent.past(from, to)
	s.doubt = s.doubt.past(from, to, n)
	s.bridge = bridge{epoch: s.lease.Epoch(), from: before, to: to}
	s.stuck = nil
	s.log.Warn("records that may have been sent are gone from the source: they keep their numbers, so the sequence has a hole", "records", n, "position", visible.Cut(string(to)))
	return context.Cause(s.lease.Context())
}
