package processor

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// bridge is a stretch that the cursor has passed without a record, or with records that are gone.
// Delivery.After names a position before it.
type bridge struct {
	epoch    cursor.Epoch
	from, to cursor.Position
}

// before is the position of the record before a place of the cursor.
func (b bridge) before(at place) cursor.Position {
	if b.to != at.position || b.epoch != at.epoch {
		return at.position
	}
	return b.from
}

// passOver durably moves the cursor over rows among which there is no record. It takes no sequence. If it
// fails, it is not owed: the source finds the same again.
func (s *shift) passOver(to cursor.Position) error {
	if err := s.writeOff(s.progress.sent.goneUpTo(s.lease.Position(), to)); err != nil || s.lease.Position() == to {
		return err
	}
	from := placeOf(s.lease)
	if err := s.lease.Advance(context.WithoutCancel(s.run), to, 0); err != nil {
		return err
	}
	s.progress.passedOver(from, to)
	s.log.Debug("passed over rows that the source leaves out", "position", visible.Cut(string(to)))
	return context.Cause(s.lease.Context())
}

// writeOff durably moves the cursor over the first n records that were sent and are gone. They keep their
// numbers, like a record that an operator skips. Delivery.After of the next record names a position before them.
// So a receiver that compares positions does not take the records that are gone for missing ones.
func (s *shift) writeOff(n int) error {
	if n == 0 {
		return nil
	}
	from, to := placeOf(s.lease), s.progress.sent.positions[n-1]
	if err := s.lease.WriteOff(context.WithoutCancel(s.run), to, int64(n)); err != nil {
		return err
	}
	s.progress.writtenOff(from, to, n)
	s.log.Warn("records that may have been sent are gone from the source: they keep their numbers, so the sequence has a hole", "records", n, "position", visible.Cut(string(to)))
	return context.Cause(s.lease.Context())
}
