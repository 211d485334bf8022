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
		return fmt.Errorf("is not a rate: write a whole number from 1 to %d, and a unit: 50/s, 100/m or 1000/h", maxLimit)
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

// errLimited ends a shift that would otherwise hold the lease for long before it may send the next record.
var errLimited = errors.New("the limit is reached")

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
	s.config.observe(Event{Kind: EventLimited, Took: delay})
	if delay > longestWaitUnderLease {
		reservation.Cancel()
		s.notBefore = time.Now().Add(delay)
		return errLimited
	}
	return s.waitUnderLease(delay)
}
