package processor

import (
	"errors"
	"time"

	"golang.org/x/time/rate"
)

// Limit bounds how many records a process hands to its sink: Records in each Per,
// evenly spread. The zero Limit bounds nothing.
type Limit struct {
	Records int
	Per     time.Duration
}

// limitTick is the time whose records may go out together.
const limitTick = 100 * time.Millisecond

// burst is how many records may go out together.
func (l Limit) burst() int {
	return max(1, int(int64(l.Records)*int64(limitTick)/int64(l.Per)))
}

// limiter returns nil if there is no limit.
func (l Limit) limiter() *rate.Limiter {
	if l.Records == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(l.Records)/l.Per.Seconds()), l.burst())
}

// Breaker makes a process wait when its receiver seems to be down: after Failures
// attempts in a row that failed, of whichever records, it makes no call for
// Cooldown, then tries one record alone; and so on until one is delivered. Order
// is kept: it waits, and sends nothing else meanwhile. While it is open, attempts
// do not count against Retry.Attempts, so that an outage makes no record poison.
// The zero Breaker never opens.
type Breaker struct {
	// Failures is after how many failed attempts it opens. 0 = never; above
	// Retry.Attempts.
	Failures int
	// Cooldown is the wait between two attempts while it is open. Default 30 s, at
	// most 24 h.
	Cooldown time.Duration
}

// open reports whether so many failed attempts in a row open it.
func (b Breaker) open(failures int) bool { return b.Failures > 0 && failures >= b.Failures }

// errLimited ends a shift that would have to hold the lease for long before it may
// send the next record.
var errLimited = errors.New("the limit is reached")

// chunk is how many records go out before the next advance.
func (s *shift) chunk() int {
	n := s.config.Dispatch.chunk(s.config)
	if s.limiter != nil {
		n = min(n, s.limiter.Burst())
	}
	if s.config.Breaker.open(s.failures) {
		n = 1
	}
	return n
}

// admit waits until the limit lets n records go.
func (s *shift) admit(n int) error {
	if s.limiter == nil {
		return nil
	}
	reservation := s.limiter.ReserveN(time.Now(), n)
	delay := reservation.Delay()
	if delay == 0 {
		return nil
	}
	s.observe(Event{Kind: EventLimited, Took: delay})
	if delay > longestWaitUnderLease {
		reservation.Cancel()
		s.notBefore = time.Now().Add(delay)
		return errLimited
	}
	return s.waitUnderLease(delay)
}
