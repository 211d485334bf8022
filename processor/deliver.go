package processor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// errSetAside ends a shift whose failing record stands in the cursor's row.
var errSetAside = errors.New("the failing record is set aside in the cursor's row")

// deliver hands records over chunk by chunk, with an advance behind each
// acknowledged part. It returns when all are delivered, when the process shall
// stop, or when the shift is over.
func (s *shift) deliver(records []Record) error {
	for len(records) > 0 && !s.ending() {
		ds := s.deliveries(records[:min(len(records), s.config.Dispatch.chunk(s.config))])
		n, failure := s.config.Dispatch.deliver(s, ds)
		if n > 0 {
			if err := s.advance(ds[n-1].Position, int64(n)); err != nil {
				return err
			}
			records = records[n:]
		}
		if failure != nil {
			if err := s.failed(ds[n], failure); err != nil {
				return err
			}
		}
		clear(ds) // payloads may be large
	}
	return nil
}

// deliveries are valid until the next call.
func (s *shift) deliveries(records []Record) []Delivery {
	s.handed = slices.Grow(s.handed[:0], len(records))
	ds := s.handed[:len(records)]
	for i := range records {
		ds[i] = Delivery{
			Record:   records[i],
			Process:  s.config.Process,
			Sequence: s.lease.Sequence() + 1 + int64(i),
			Epoch:    s.lease.Epoch(),
			Attempt:  1,
		}
	}
	if s.stuck.at(records[0].Position) {
		ds[0].Attempt += s.stuck.attempts
	}
	return ds
}

// advance makes durable what the sink acknowledged. If that fails, the sink is
// not called again for it as long as no other worker came between: see settle.
func (s *shift) advance(to cursor.Position, n int64) error {
	if s.config.Dispatch.outlives {
		s.owed = &advance{epoch: s.lease.Epoch(), from: s.lease.Position(), to: to, n: n}
	}
	if err := s.lease.Advance(context.WithoutCancel(s.run), to, n); err != nil {
		return err
	}
	s.owed = nil
	if s.stuck != nil {
		s.log.Info("delivered after failures", "position", to, "attempt", s.stuck.attempts+1)
		s.stuck = nil
	}
	return context.Cause(s.lease.Context())
}

// settle makes the advance that an earlier shift owes. The row tells whether it
// is still owed: not if the commit had succeeded after all, and not if another
// worker or an operator moved the cursor.
func (s *shift) settle() error {
	owed := s.owed
	s.owed = nil
	if owed == nil || owed.epoch != s.lease.Epoch() || owed.from != s.lease.Position() {
		return nil
	}
	return s.advance(owed.to, owed.n)
}

// recall takes up the failing record that stands in the row, whichever worker
// wrote it there; what memory says otherwise is forgotten.
func (s *shift) recall() {
	s.stuck = nil
	if f := s.lease.Failure(); f != nil {
		s.stuck = newStuck(f.Position, f.Attempts, s.config.Retry)
	}
}

// failed decides what becomes of a record that was not acknowledged. nil means
// that it is tried again under this lease.
func (s *shift) failed(d Delivery, failure error) error {
	if cause := context.Cause(s.sink); cause != nil {
		return cause // the record has nothing to do with it
	}
	if !s.stuck.at(d.Position) {
		s.stuck = newStuck(d.Position, 0, s.config.Retry)
	}
	delay := s.stuck.again(failure)
	f := cursor.Failure{
		Position:  d.Position,
		RecordID:  d.ID,
		Attempts:  d.Attempt,
		First:     s.stuck.first,
		Last:      time.Now(),
		Wait:      delay,
		Error:     failure.Error(),
		Permanent: IsPermanent(failure),
	}
	log := s.log.With("epoch", d.Epoch, "position", d.Position, "record_id", d.ID, "attempt", d.Attempt, "err", failure)
	var panicked *panicError
	if errors.As(failure, &panicked) {
		log = log.With("stack", string(panicked.stack))
	}
	switch {
	case s.final(f, failure):
		log.Error("delivery failed for good: halting")
		return setAside(s.lease.Halt(context.WithoutCancel(s.run), f))
	case delay > longestWaitUnderLease || s.ending():
		log.Warn("delivery failed", "delay", delay)
		return setAside(s.lease.Fail(context.WithoutCancel(s.run), f))
	default:
		log.Warn("delivery failed", "delay", delay)
		return s.waitUnderLease(delay)
	}
}

// final reports whether a failed record is not tried again.
func (s *shift) final(f cursor.Failure, failure error) bool {
	attempts := s.config.Retry.Attempts
	return f.Permanent ||
		attempts > 0 && f.Attempts >= attempts ||
		s.config.HaltOnTimeout && timedOut(failure)
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func setAside(err error) error {
	if err != nil {
		return err
	}
	return errSetAside
}

// waitUnderLease waits out a short delay, or less if the lease or the process
// ends.
func (s *shift) waitUnderLease(delay time.Duration) error {
	ctx, cancel := context.WithCancel(s.sink)
	defer cancel()
	defer context.AfterFunc(s.run, cancel)()
	wait(ctx, delay)
	return context.Cause(s.sink)
}
