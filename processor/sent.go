package processor

import (
	"context"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// sent are the records behind a position that went out with their numbers, in order. Each
// number belongs to its record for good: if that is gone when it is read again, as when
// its row was deleted, the next record must not get the number. A receiver that drops
// what is not above the last number would drop it.
type sent struct {
	behind    cursor.Position
	sequence  int64 // before the first of them
	positions []cursor.Position
}

// note takes up the records that are handed over now.
func (t *sent) note(behind cursor.Position, ds []Delivery) {
	t.behind, t.sequence, t.positions = behind, ds[0].Sequence-1, t.positions[:0]
	for i := range ds {
		t.positions = append(t.positions, ds[i].Position)
	}
}

// recall compares with the row. Where others moved the cursor over some of these, as an
// operator does who skips one, the numbers of the rest still hold. Else it takes up the
// failing record that another worker, or this one in an earlier life, wrote there.
func (t *sent) recall(behind cursor.Position, sequence int64, f *cursor.Failure) {
	if t.sequence+int64(t.before(behind, true)) == sequence && t.behind <= behind {
		t.past(t.behind, behind)
	} else {
		t.positions = t.positions[:0]
	}
	if len(t.positions) > 0 {
		return // the failing one is among these
	}
	t.behind, t.sequence = behind, sequence
	if f != nil && f.Position > behind && f.Class != cursor.ClassUnreadable {
		t.positions = append(t.positions, f.Position)
	}
}

// past leaves those that the cursor has not passed, now that it is somewhere else.
func (t *sent) past(from, to cursor.Position) {
	if t.behind != from {
		t.positions = t.positions[:0]
	}
	n := t.before(to, true)
	t.behind, t.sequence, t.positions = to, t.sequence+int64(n), slices.Delete(t.positions, 0, n)
}

// before counts those before a position, or up to it.
func (t *sent) before(position cursor.Position, inclusive bool) int {
	n, found := slices.BinarySearch(t.positions, position)
	if found && inclusive {
		n++
	}
	return n
}

// gone counts those that are not there any more: the next record is one after them or,
// with all, there is none up to that position.
func (t *sent) gone(behind, next cursor.Position, all bool) int {
	if t.behind != behind {
		return 0
	}
	return t.before(next, all)
}

// whole is how many of n records go out together: up to the first after which one is gone.
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

// handedOver notes which records of a call went out, n of which are acknowledged. What is
// done in the cursor's own transaction is undone with it.
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

// writeOff durably moves the cursor over the first n records that were sent and are gone.
// They keep their numbers, as a record does that an operator skips. What Delivery.After
// names stands before them: a receiver that never had them has missed none that is there.
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
