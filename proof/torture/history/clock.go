package history

import "time"

// Clock tells the time of a run.
type Clock struct{ began time.Time }

// NewClock begins a run.
func NewClock() Clock { return Clock{time.Now()} }

// Now is the time since the beginning, on the monotonic clock.
func (c Clock) Now() time.Duration { return time.Since(c.began) }

// At converts a reading of this host's wall clock.
func (c Clock) At(wall time.Time) time.Duration { return wall.Sub(c.began.Round(0)) }

// Drift is how far the wall clock has moved against the monotonic one since the beginning.
func (c Clock) Drift() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(c.began.Round(0)) - now.Sub(c.began)
}
