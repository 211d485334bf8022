package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// replayPatience is the wait between two attempts to take the lease from a busy worker.
const replayPatience = 20 * time.Millisecond

// Replay delivers a dead letter of the process out of its turn, with the sequence of its earlier attempts, in
// an epoch of its own. No other worker delivers meanwhile: a busy worker yields the row, and Replay waits
// for that until ctx ends. The cursor stays where it is. A failure leaves the dead letter open; its error wraps
// cursor.ErrNoDeadLetter or cursor.ErrMoved as the errors of the operator's Discard do. With d.DryRun nothing is sent, and a process
// that would refuse the replay refuses it.
// Config.Prepare makes the record ready again.
//
// The process must be running (not paused or halted), and this Process must not run it at the same time.
func (p *Process) Replay(ctx context.Context, id int64, d cursor.Decision) error {
	letter, err := p.config.Store.Resolvable(ctx, id, d, cursor.Replayed)
	if err != nil {
		return err
	}
	if letter.Process != p.config.Process {
		return fmt.Errorf("replay dead letter %d of %q: %w: it belongs to %q", id, p.config.Process, cursor.ErrNoDeadLetter, letter.Process)
	}
	if letter.Failure.Class == cursor.ClassUnreadable {
		return fmt.Errorf("replay dead letter %d: %w", id, errUnread)
	}
	if d.DryRun {
		row, err := p.config.Store.Look(ctx, p.config.Process)
		if err != nil {
			return err
		}
		return row.Workable()
	}
	lease, err := p.claim(ctx)
	if err != nil {
		return err
	}
	defer lease.Release()
	s := p.newShift(ctx, lease)
	defer s.stop()
	// Check again, with the row locked: another operator may have replayed or discarded it since.
	if letter, err = lease.Letter(ctx, id, d); err != nil {
		return err
	}
	delivery := s.again(letter)
	if err := s.prepareAgain(&delivery.Record); err != nil {
		return fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	n, failure := s.hand([]Delivery{delivery})
	if failure != nil {
		return fmt.Errorf("replay dead letter %d: %w", id, failure)
	}
	if n == 0 {
		return fmt.Errorf("replay dead letter %d: %w", id, context.Cause(ctx))
	}
	return lease.Replayed(context.WithoutCancel(ctx), id, d)
}

// errUnread reports that the dead letter does not hold the whole record.
var errUnread = errors.New("the source could not read all of this record, so its dead letter is incomplete: " +
	"fix the row and deliver it by hand or seek back to it, then discard the dead letter")

// claim takes the lease, even from a busy worker, which yields to a session that waits for the row.
func (p *Process) claim(ctx context.Context) (*cursor.Lease, error) {
	for {
		if err := p.config.Store.Await(ctx, p.config.Process); err != nil {
			return nil, err
		}
		lease, err := p.lock(ctx)
		if !errors.Is(err, cursor.ErrHeld) {
			return lease, err
		}
		wait(ctx, replayPatience)
	}
}

// again returns the delivery of a dead letter.
func (s *shift) again(letter cursor.DeadLetter) Delivery {
	return Delivery{
		Record:  OfLetter(letter),
		Process: s.config.Process, Worker: s.config.Store.Worker(), Sequence: letter.Sequence, Epoch: s.lease.Epoch(), Origin: s.lease.Origin(), History: s.lease.History(letter.Position), Attempt: letter.Failure.Attempts + 1,
		Unknown: letter.Failure.Class == cursor.ClassUnknown,
		After:   letter.Position,
	}
}
