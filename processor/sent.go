package processor

import (
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// sent are the records after a position that went out with their numbers, in order. Each number belongs to its
// record for good. If the record is gone at the next read, because its row was deleted for example, the next
// record must not get its number. A receiver that drops every number not above the last one would drop that
// record.
type sent struct {
	after     cursor.Position
	sequence  int64 // before the first of them
	positions []cursor.Position
}

// note keeps the records that are handed over now.
func (t *sent) note(after cursor.Position, ds []Delivery) {
	t.after, t.sequence, t.positions = after, ds[0].Sequence-1, t.positions[:0]
	for i := range ds {
		t.positions = append(t.positions, ds[i].Position)
	}
}

// recall compares sent with the row. If the cursor was moved over some of these records, as by an operator who
// skips one, the numbers of the rest still hold. Otherwise recall takes over the failing record from the row.
// Another worker, or an earlier run of this one, wrote it there.
func (t *sent) recall(at place, f *cursor.Failure) {
	if t.sequence+int64(t.upTo(at.position)) == at.sequence && t.after <= at.position {
		t.past(t.after, at.position)
	} else {
		t.positions = t.positions[:0]
	}
	if len(t.positions) > 0 {
		return // the failing record is one of these
	}
	t.after, t.sequence = at.position, at.sequence
	if f != nil && f.Position > at.position && f.Class != cursor.ClassUnreadable {
		t.positions = append(t.positions, f.Position)
	}
}

// past keeps those that the cursor has not passed, now that it is somewhere else.
func (t *sent) past(from, to cursor.Position) {
	if t.after != from {
		t.positions = t.positions[:0]
	}
	n := t.upTo(to)
	t.after, t.sequence, t.positions = to, t.sequence+int64(n), slices.Delete(t.positions, 0, n)
}

// before counts those before a position.
func (t *sent) before(position cursor.Position) int {
	n, _ := slices.BinarySearch(t.positions, position)
	return n
}

// upTo counts those before a position and at it.
func (t *sent) upTo(position cursor.Position) int {
	n, found := slices.BinarySearch(t.positions, position)
	if found {
		n++
	}
	return n
}

// gone counts those after a position that no longer exist, since the next record is at next.
func (t *sent) gone(after, next cursor.Position) int {
	if t.after != after {
		return 0
	}
	return t.before(next)
}

// goneUpTo counts those after a position that no longer exist, since there is no record up to to.
func (t *sent) goneUpTo(after, to cursor.Position) int {
	if t.after != after {
		return 0
	}
	return t.upTo(to)
}

// whole is how many of n records go out together: up to the first one after which one is gone.
func (t *sent) whole(after cursor.Position, records []Record, n int) int {
	if t.after != after {
		return n
	}
	for i := 1; i < min(n, len(t.positions)); i++ {
		if records[i].Position != t.positions[i] {
			return i
		}
	}
	return n
}
