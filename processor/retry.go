package processor

import (
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	// longestWaitUnderLease is the longest delay between two attempts for which the worker keeps the lease. For
	// a longer one it releases the lock, and any worker carries on.
	longestWaitUnderLease = time.Second
	// maxRetryAfter bounds the delay that a receiver may ask for.
	maxRetryAfter = time.Hour
	// backoffSteps is after how many attempts a doubling delay has reached any Retry.Max. So a worker that
	// resumes after more attempts need not count them all.
	backoffSteps = 40
)

// stuck is the record that a process cannot get past, as this worker sees it.
type stuck struct {
	position cursor.Position
	attempts int
	// unreached is how many of the attempts reached no receiver.
	unreached int
	first     time.Time // as far as this worker knows
	backoff   retry.Backoff
}

// excused is how many attempts of the failure in the row reached no receiver. This worker's own count holds
// unless another worker has tried since. Of another worker's attempts the row only shows the last one: if that
// reached no receiver, all of them are excused.
func (s *stuck) excused(f cursor.Failure) int {
	switch {
	case s.at(f.Position) && s.attempts == f.Attempts:
		return s.unreached
	case f.Class == cursor.ClassUnreached:
		return f.Attempts
	default:
		return 0
	}
}

// newStuck resumes the back-off of a record after a number of attempts. A Backoff has a state, so each record
// has its own.
func newStuck(position cursor.Position, attempts int, config Retry) *stuck {
	backoff := retry.WithCappedDuration(config.Max, retry.NewExponential(config.Initial))
	if config.Jitter > 0 { // the inner cap keeps the jitter from an overflow, the outer one keeps Max
		backoff = retry.WithCappedDuration(config.Max, retry.WithJitterPercent(uint64(config.Jitter), backoff))
	}
	for range min(attempts, backoffSteps) {
		backoff.Next()
	}
	return &stuck{position: position, attempts: attempts, first: time.Now(), backoff: backoff}
}

// at reports whether this is the record at a position; nil is at none.
func (s *stuck) at(position cursor.Position) bool { return s != nil && s.position == position }

// again counts a failed attempt and returns the delay before the next one: the delay of the back-off, or longer
// if the receiver asked for it.
func (s *stuck) again(failure error) time.Duration {
	s.attempts++
	delay, _ := s.backoff.Next()
	return max(delay, min(RetryAfterDelay(failure), maxRetryAfter))
}

// deferred is when the next attempt at a record is due, by a clock that cannot be set. The database's clock may
// be set back during a back-off, and would make it last longer.
type deferred struct {
	epoch    cursor.Epoch
	position cursor.Position
	attempts int
	due      time.Time
}

// left is how long it is until the attempt is due, at most as long as when this worker first saw it.
func (d *deferred) left(row cursor.Row) time.Duration {
	f := row.Failure
	if d.epoch != row.Epoch || d.position != f.Position || d.attempts != f.Attempts {
		*d = deferred{row.Epoch, f.Position, f.Attempts, time.Now().Add(f.Wait)}
	}
	return min(f.Wait, time.Until(d.due))
}
