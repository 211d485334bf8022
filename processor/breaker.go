package processor

import "time"

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
