package processor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Limit bounds how many records a process hands to its sink: Records in each Per,
// evenly spread. The zero Limit bounds nothing.
type Limit struct {
	Records int
	Per     time.Duration
}

// limitUnits are what a Limit may count in.
var limitUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// maxLimit bounds the records of a Limit that is written as text.
const maxLimit = 1_000_000

// UnmarshalText reads a number in each second, minute or hour, as in 50/s. Its error does not quote the text.
func (l *Limit) UnmarshalText(text []byte) error {
	number, unit, _ := strings.Cut(string(text), "/")
	records, err := strconv.Atoi(number)
	per, known := limitUnits[unit]
	if err != nil || !known || records < 1 || records > maxLimit {
		return fmt.Errorf("is no rate: write a whole number from 1 to %d, and a unit: 50/s, 100/m or 1000/h", maxLimit)
	}
	*l = Limit{Records: records, Per: per}
	return nil
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
	// Failures is after how many failed attempts in a row it opens; above Retry.Attempts.
	//
	// In the file: failed attempts in a row after which it opens; above `retry.attempts`.
	Failures int `knob:"failures" need:"failures: 10" min:"1" max:"1_000_000_000"`
	// Cooldown is the wait between two attempts while it is open.
	Cooldown time.Duration `knob:"cooldown" default:"30s" min:"1ms" max:"24h"`
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
