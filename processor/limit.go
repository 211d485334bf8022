package processor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Limit bounds how many records a process hands to its sink: Records in each Per, evenly spread. The zero Limit
// bounds nothing.
type Limit struct {
	Records int
	Per     time.Duration
}

// limitUnits are the time units of a Limit.
var limitUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// maxLimit bounds the records of a Limit that is written as text.
const maxLimit = 1_000_000

// UnmarshalText reads a number per second, minute or hour, such as 50/s. Its error does not quote the text.
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

// limiter returns the limiter for a Limit, or nil if there is no limit.
func (l Limit) limiter() *rate.Limiter {
	if l.Records == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(l.Records)/l.Per.Seconds()), l.burst())
}

// Breaker makes a process wait when its receiver seems to be down. After Failures failed attempts in a row, of
// any records, the process makes no call for Cooldown. Then it tries one record alone, and so on until one is
// delivered. Order is kept: the process waits, and sends nothing else meanwhile. While the breaker is open,
// attempts do not count against Retry.Attempts, so that an outage makes no record poison. The zero Breaker
// never opens.
type Breaker struct {
	// Failures is after how many failed attempts in a row it opens; above Retry.Attempts.
	//
	// In the file: after how many failed attempts in a row it opens; above `retry.attempts`.
	Failures int `knob:"failures" need:"failures: 10" min:"1" max:"1_000_000_000"`
	// Cooldown is the wait between two attempts while it is open.
	Cooldown time.Duration `knob:"cooldown" default:"30s" min:"1ms" max:"24h"`
}

// open reports whether this many failed attempts in a row open it.
func (b Breaker) open(failures int) bool { return b.Failures > 0 && failures >= b.Failures }

// errLimited ends a shift that would otherwise hold the lease for long before it may send the next record.
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

// admit waits until the limit lets n records go out.
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
