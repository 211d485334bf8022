package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// errDeferred ends a shift whose failing record waits in the cursor's row: for its next attempt, or for an
// operator.
var errDeferred = errors.New("the failing record waits in the cursor's row")

// failed decides what happens to a record that was not acknowledged, and returns how many records are done
// with: none if it is tried again, one if it became a dead letter.
//
// No case lets a record after the failing one go first: either the shift ends, or the failing record is the next
// one that deliver hands over. Of an InTx record no effect is left: inTx has undone them.
func (s *shift) failed(d Delivery, failure error) (int, error) {
	if cause := context.Cause(s.calls); cause != nil {
		// The lease or the process ended in the call, so the failure may have nothing to do with the record, and
		// this worker may not write it to the row. TestLostLease_EndsTheSinkCallAndAnotherWorkerDelivers
		s.keepFinal(d, failure)
		return 0, cause
	}
	class := s.classOf(failure)
	if class == cursor.ClassDatabase {
		// The database failed and not the record: no attempt is counted. The next lease applies the record again.
		// TestInTx_ADatabaseErrorIsNotCountedAgainstTheRecord
		return 0, fmt.Errorf("deliver the record at position %s: %w", visible.Cut(string(d.Position)), failure)
	}
	f := s.failure(d, failure, class)
	log := s.failureLog(d, failure)
	switch {
	case s.final(f):
		// Halted, or the cursor passes the record together with its dead letter.
		// TestHalt_NothingBehindAPoisonRecordIsSentUntilAnOperatorDecides,
		// TestDeadLetter_PutsTheRecordAsideAndKeepsTheOrderOfTheOthers
		v := s.judge(d, f)
		v.once = outcome.IsReportedOnce(failure)
		done, err := s.carryOut(v)
		if err != nil && !errors.Is(err, errDeferred) {
			log = log.With("cause", err)
		}
		log.Error("delivery failed for good: " + v.sentence(err))
		return done, err
	case f.Wait > longestWaitUnderLease || s.ending():
		// The row has the record, its attempts and when the next one is due, and gives the lease back.
		// TestRetry_ALongDelayIsWaitedOutWithoutTheLeaseByWhicheverWorker
		log.Warn("delivery failed", "delay", f.Wait)
		if err := s.write(func(ctx context.Context) error { return s.lease.Fail(ctx, f) }); err != nil {
			return 0, err
		}
		return 0, errDeferred
	default:
		// The row has the attempt before the next one begins: a worker that takes over goes on counting.
		// TestFailed_EveryAttemptStandsInTheRowForWhoeverComesNext
		log.Warn("delivery failed", "delay", f.Wait)
		if err := s.write(func(ctx context.Context) error { return s.lease.Note(ctx, f) }); err != nil {
			return 0, err
		}
		return 0, s.waitUnderLease(f.Wait)
	}
}

// failure counts a failed attempt and returns it as the row takes it.
func (s *shift) failure(d Delivery, failure error, class cursor.Class) cursor.Failure {
	delay := s.progress.failed(d.Position, failure, class, s.config.Retry)
	if breaker := s.config.Breaker; breaker.open(s.progress.failures) {
		delay = max(delay, breaker.Cooldown)
		s.config.observe(Event{Kind: EventBreaker, Took: delay})
	}
	return cursor.Failure{
		Position: d.Position,
		RecordID: d.ID,
		Attempts: d.Attempt,
		First:    s.progress.stuck.first,
		Last:     time.Now(),
		Wait:     delay,
		Error:    failure.Error(),
		Class:    class,
	}
}

// failureLog returns a log with what identifies the attempt.
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
		attempts > 0 && s.counted(f) >= attempts && !s.config.Breaker.open(s.progress.failures) ||
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
		return f.Attempts - s.progress.stuck.unreached
	}
}

// haltsOn reports whether the process halts over a failure that is not a verdict on the record: the receiver
// refused us, or the outcome is unknown. So the record becomes no dead letter.
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
	case s.config.Dispatch.atomic() && isDatabase(err):
		return cursor.ClassDatabase
	case s.config.HaltOnTimeout && !s.config.Dispatch.atomic() && outcome.IsOutage(err):
		return cursor.ClassUnknown
	case IsUnreached(err): // a time-out may be its cause
		return cursor.ClassUnreached
	case !s.config.Dispatch.atomic() && outcome.IsUnknown(err):
		return cursor.ClassUnknown
	default:
		return cursor.ClassTransient
	}
}

// waitUnderLease waits for a short delay, or until the lease or the process ends.
func (s *shift) waitUnderLease(delay time.Duration) error {
	ctx, cancel := context.WithCancel(s.calls)
	defer cancel()
	defer context.AfterFunc(s.run, cancel)()
	wait(ctx, delay)
	return context.Cause(s.calls)
}
