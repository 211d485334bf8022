package processor

import (
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	// longestWaitUnderLease is the longest delay between two attempts for which
	// the lease is kept; for a longer one the lock is let go and any worker
	// carries on.
	longestWaitUnderLease = time.Second
	// maxRetryAfter bounds the delay that a receiver may ask for.
	maxRetryAfter = time.Hour
	// backoffSteps is after how many attempts a doubling delay has reached any
	// Retry.Max, so that resuming after more need not count them all.
	backoffSteps = 40
)

// stuck is the record a process cannot get past, as this worker sees it.
type stuck struct {
	position cursor.Position
	attempts int
	// unreached of these reached no receiver.
	unreached int
	first     time.Time // as far as this worker knows
	backoff   retry.Backoff
}

// excused is how many attempts of the failure in the row reached no receiver. What this
// worker counted holds as long as no other one has tried since. Of another's attempts
// the row shows the last one alone: if that reached nobody, all of them are excused.
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

// newStuck resumes the back-off of a record after so many attempts. A Backoff
// has a state, so each record has its own.
func newStuck(position cursor.Position, attempts int, config Retry) *stuck {
	backoff := retry.WithCappedDuration(config.Max, retry.NewExponential(config.Initial))
	if config.Jitter > 0 {
		backoff = retry.WithJitterPercent(uint64(config.Jitter), backoff)
	}
	for range min(attempts, backoffSteps) {
		backoff.Next()
	}
	return &stuck{position: position, attempts: attempts, first: time.Now(), backoff: backoff}
}

// at reports whether the record at a position is the one; nil is at none.
func (s *stuck) at(position cursor.Position) bool { return s != nil && s.position == position }

// again counts a failed attempt and returns the delay before the next one: that
// of the back-off, or longer if the receiver asked for it.
func (s *stuck) again(failure error) time.Duration {
	s.attempts++
	delay, _ := s.backoff.Next()
	return max(delay, min(RetryAfterDelay(failure), maxRetryAfter))
}

// deferred is when the next attempt at a record is due, by a clock that cannot be set:
// the database's may be set back during a back-off, and would make it last for longer.
type deferred struct {
	epoch    cursor.Epoch
	position cursor.Position
	attempts int
	due      time.Time
}

// left is how long the attempt is off, at most as long as when it was first seen.
func (d *deferred) left(row cursor.Row) time.Duration {
	f := row.Failure
	if d.epoch != row.Epoch || d.position != f.Position || d.attempts != f.Attempts {
		*d = deferred{row.Epoch, f.Position, f.Attempts, time.Now().Add(f.Wait)}
	}
	return min(f.Wait, time.Until(d.due))
}
