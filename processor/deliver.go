package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// errSetAside ends a shift whose failing record is written in the cursor's row.
var errSetAside = errors.New("the failing record is set aside in the cursor's row")

// deliver hands records over chunk by chunk, and advances after each acknowledged part. It returns when all are
// delivered, when the process has to stop, or when the shift is over.
func (s *shift) deliver(records []Record) error {
	for len(records) > 0 && !s.ending() {
		if err := s.writeOff(s.sent.gone(s.lease.Position(), records[0].Position, false)); err != nil {
			return err
		}
		position := s.lease.Position()
		n := s.sent.whole(position, records, readable(records[:min(len(records), s.chunk())]))
		if err := s.admit(n); err != nil || s.ending() {
			return err
		}
		ds := s.deliveries(records[:n])
		n, failure := s.hand(ds)
		s.doubtful(ds, n, failure)
		s.handedOver(position, ds, n, failure)
		if n > 0 {
			last := ds[n-1]
			if err := s.advance(advance{to: last.Position, n: int64(n), created: last.CreatedAt}); err != nil {
				if failure != nil {
					s.keepFinal(ds[n], failure)
				}
				return err
			}
			records = records[n:]
		}
		if failure != nil {
			passed, err := s.failed(ds[n], failure)
			if err != nil {
				return err
			}
			records = records[passed:]
		}
		clear(ds) // payloads may be large
	}
	return nil
}

// readable is how many records go out together: those before the first one that the source could not read, or
// that one alone.
func readable(records []Record) int {
	for i := range records {
		if records[i].Fault != nil {
			return max(i, 1)
		}
	}
	return len(records)
}

// hand gives records to the sink. A record that the source could not read fails without it.
func (s *shift) hand(ds []Delivery) (int, error) {
	if fault := ds[0].Fault; fault != nil {
		return 0, &unreadableError{fault}
	}
	return s.config.Dispatch.deliver(s, ds)
}

// deliveries returns the deliveries of records. They are valid until the next call.
func (s *shift) deliveries(records []Record) []Delivery {
	s.handed = slices.Grow(s.handed[:0], len(records))
	ds := s.handed[:len(records)]
	after, sequence := s.bridge.before(s.lease), s.lease.Sequence()
	worker := s.config.Store.Worker()
	epoch, origin, doubtful := s.lease.Epoch(), s.lease.Origin(), s.doubt.at(s.lease.Position())
	for i := range records { // field by field, which avoids a copy
		d := &ds[i]
		d.Record, d.Process, d.Worker, d.Origin, d.Epoch, d.After = records[i], s.config.Process, worker, origin, epoch, after
		d.Sequence, d.Attempt, d.Unknown, d.History = sequence+1+int64(i), 1, i < doubtful, s.lease.History(records[i].Position)
		after = records[i].Position
	}
	if s.stuck.at(records[0].Position) {
		ds[0].Attempt += s.stuck.attempts
	}
	return ds
}

// advance makes durable what the sink acknowledged. If that fails, the sink does not get the records again
// unless another worker came in between: see settle.
func (s *shift) advance(a advance) error {
	a.epoch, a.from = s.lease.Epoch(), s.lease.Position()
	if s.config.Dispatch.outlives {
		s.owed = &a
	}
	err := s.write(func(ctx context.Context) error { return s.lease.Advance(ctx, a.to, a.n) })
	if errors.Is(err, cursor.ErrUndone) {
		s.owed = &a // the effects in the same transaction were committed
	}
	if err != nil {
		return err
	}
	s.owed, s.failures, s.letters = nil, 0, 0
	s.remember()
	s.doubt = s.doubt.past(a.from, a.to, int(a.n))
	s.sent.past(a.from, a.to)
	s.observe(Event{Kind: EventAdvance, Records: int(a.n), Created: a.created})
	if s.stuck != nil {
		s.log.Info("delivered after failures", "position", visible.Cut(string(a.to)), "attempt", s.stuck.attempts+1)
		s.stuck = nil
	}
	return context.Cause(s.lease.Context())
}

// settle makes the advance that an earlier shift still owes. The row shows whether it is owed: not if the
// commit succeeded after all, and not if another worker or an operator moved the cursor. If it is owed but
// changes no row, although the lease holds the lock, foreign code keeps it from the row. Then the sink is not
// called before that code is gone.
func (s *shift) settle() error {
	owed := s.owed
	s.owed = nil
	if owed == nil || owed.epoch != s.lease.Epoch() || owed.from != s.lease.Position() {
		return nil
	}
	err := s.advance(*owed)
	if errors.Is(err, cursor.ErrUnmoved) {
		return s.kept(err)
	}
	return err
}

// recall takes over the failing record in the row, even if another worker wrote it there, and forgets what
// memory holds instead.
func (s *shift) recall() {
	known := s.stuck
	s.stuck = nil
	if s.config.Dispatch.outlives {
		s.sent.recall(s.lease.Position(), s.lease.Sequence(), s.lease.Failure())
	}
	if f := s.lease.Failure(); f != nil {
		s.stuck = newStuck(f.Position, f.Attempts, s.config.Retry)
		s.stuck.unreached = known.excused(*f)
		s.failures = max(s.failures, f.Attempts)
	}
}

// failed decides what happens to a record that was not acknowledged, and returns how many records are done
// with: none if it is tried again under this lease, one if it was put aside.
func (s *shift) failed(d Delivery, failure error) (int, error) {
	if cause := context.Cause(s.sink); cause != nil {
		s.keepFinal(d, failure)
		return 0, cause // the record is not the cause
	}
	class := s.classOf(failure)
	if class == cursor.ClassDatabase {
		return 0, fmt.Errorf("deliver the record at position %s: %w", visible.Cut(string(d.Position)), failure)
	}
	if !s.stuck.at(d.Position) {
		s.stuck = newStuck(d.Position, 0, s.config.Retry)
	}
	s.failures++
	f := cursor.Failure{
		Position: d.Position,
		RecordID: d.ID,
		Attempts: d.Attempt,
		First:    s.stuck.first,
		Last:     time.Now(),
		Wait:     s.delay(failure, class),
		Error:    failure.Error(),
		Class:    class,
	}
	log := s.failureLog(d, failure)
	switch {
	case s.final(f):
		v := s.judge(d, f)
		v.final = outcome.IsFinal(failure)
		passed, err := s.carryOut(v)
		if err != nil && !errors.Is(err, errSetAside) {
			log = log.With("cause", err)
		}
		log.Error("delivery failed for good: " + v.sentence(err))
		return passed, err
	case f.Wait > longestWaitUnderLease || s.ending():
		log.Warn("delivery failed", "delay", f.Wait)
		return 0, setAside(s.write(func(ctx context.Context) error { return s.lease.Fail(ctx, f) }))
	default:
		log.Warn("delivery failed", "delay", f.Wait)
		if err := s.write(func(ctx context.Context) error { return s.lease.Note(ctx, f) }); err != nil {
			return 0, err
		}
		return 0, s.waitUnderLease(f.Wait)
	}
}

// delay counts a failed attempt of the record and returns how long to wait.
func (s *shift) delay(failure error, class cursor.Class) time.Duration {
	delay := s.stuck.again(failure)
	if class == cursor.ClassUnreached {
		s.stuck.unreached++
	}
	if breaker := s.config.Breaker; breaker.open(s.failures) {
		delay = max(delay, breaker.Cooldown)
		s.observe(Event{Kind: EventBreaker, Took: delay})
	}
	return delay
}

func (s *shift) failureLog(d Delivery, failure error) *slog.Logger {
	log := s.log.With("epoch", d.Epoch, "position", visible.Cut(string(d.Position)), "record_id", visible.Cut(d.ID), "attempt", d.Attempt, "err", failure)
	var panicked *panicError
	if errors.As(failure, &panicked) {
		log = log.With("stack", string(panicked.stack))
	}
	return log
}

// final reports whether a failed record is not tried again.
func (s *shift) final(f cursor.Failure) bool {
	attempts := s.config.Retry.Attempts
	return f.Class == cursor.ClassPermanent || f.Class == cursor.ClassUnreadable ||
		f.Class == cursor.ClassRefused ||
		attempts > 0 && s.counted(f) >= attempts && !s.config.Breaker.open(s.failures) ||
		s.haltsOn(f)
}

// counted is how many attempts of a record count towards Retry.Attempts. If the attempts end in a dead letter,
// only those count that reached a receiver.
func (s *shift) counted(f cursor.Failure) int {
	switch {
	case !s.config.DeadLetter:
		return f.Attempts
	case f.Class == cursor.ClassUnreached:
		return 0
	default:
		return f.Attempts - s.stuck.unreached
	}
}

// haltsOn reports whether the process halts over a failure that is not a verdict on the record: the receiver
// refused us, or the outcome is unknown. So the record is not put aside.
func (s *shift) haltsOn(f cursor.Failure) bool {
	return f.Class == cursor.ClassRefused || s.config.HaltOnTimeout && f.Class == cursor.ClassUnknown
}

// classOf returns the class of a sink's error; "" if there is none.
func (s *shift) classOf(err error) cursor.Class {
	switch {
	case err == nil:
		return ""
	case isUnreadable(err):
		return cursor.ClassUnreadable
	case IsRefused(err): // first: a refused call shows nothing about the record
		return cursor.ClassRefused
	case IsPermanent(err):
		return cursor.ClassPermanent
	case !s.config.Dispatch.outlives && isDatabase(err):
		return cursor.ClassDatabase
	case s.config.HaltOnTimeout && s.config.Dispatch.outlives && outcome.IsOutage(err):
		return cursor.ClassUnknown
	case IsUnreached(err): // a time-out may be its cause
		return cursor.ClassUnreached
	case s.config.Dispatch.outlives && outcome.IsUnknown(err):
		return cursor.ClassUnknown
	default:
		return cursor.ClassTransient
	}
}

func setAside(err error) error {
	if err != nil {
		return err
	}
	return errSetAside
}

// waitUnderLease waits for a short delay, or until the lease or the process ends.
func (s *shift) waitUnderLease(delay time.Duration) error {
	ctx, cancel := context.WithCancel(s.sink)
	defer cancel()
	defer context.AfterFunc(s.run, cancel)()
	wait(ctx, delay)
	return context.Cause(s.sink)
}
