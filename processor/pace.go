package processor

import (
	"time"

	"github.com/sethvargo/go-retry"
)

const (
	// patienceFraction is the fraction of a poll that a worker leaves to the worker before it. It waits for the
	// rest between two looks, so that a take-over comes within one poll.
	patienceFraction = 4
	// minPoll is the shortest wait between two looks, and the smallest Config.Poll.
	minPoll = 5 * time.Millisecond
	// restPoll bounds the wait of a process that an operator must set running.
	restPoll = time.Second
	// yieldDelay gives the session to which a worker yielded the row the time to wake up and take the lock.
	yieldDelay = 50 * time.Millisecond

	firstErrorDelay  = 100 * time.Millisecond
	maxErrorDelay    = 5 * time.Second
	errorDelayJitter = 20 // percent
	// longestErrorDelay is maxErrorDelay with the jitter.
	longestErrorDelay = maxErrorDelay + maxErrorDelay*errorDelayJitter/100
)

// pace decides how long to wait between two passes. If nothing came for some time, the worker notices the next
// record within half of that time. If a fence held records for some time, the worker notices within a tenth of
// that time that the fence lets them through.
type pace struct {
	poll   time.Duration
	idle   time.Duration // grows while there is nothing to deliver
	last   State
	errors retry.Backoff // nil while there is none
}

func newPace(poll time.Duration) *pace { return &pace{poll: poll, idle: minPoll} }

func (p *pace) next(s state, err error) time.Duration {
	if err != nil {
		return p.afterError()
	}
	p.errors = nil
	if s.is == StateWorked || s.is == StateWaiting && p.last != StateWaiting {
		p.idle = minPoll // something is going on
	}
	p.last = s.is
	switch s.is {
	case StateWorked:
		return 0
	case StateIdle:
		wait := p.idle
		p.idle = min(p.poll, p.idle*3/2)
		return wait
	case StateWaiting:
		wait := p.idle
		p.idle = min(p.poll, p.idle*11/10)
		if s.wait > 0 {
			wait = min(wait, s.wait)
		}
		return wait
	case StateStandby:
		if s.wait > 0 {
			return s.wait
		}
		return p.poll - p.poll/patienceFraction
	case StateFailing, StateLimited:
		return min(p.poll, s.wait)
	default:
		return min(p.poll, restPoll)
	}
}

// afterError is the wait after a pass that failed, over the database. The delay between two attempts at a record is
// another one: see stuck.
func (p *pace) afterError() time.Duration {
	if p.errors == nil {
		p.errors = retry.WithJitterPercent(errorDelayJitter, retry.WithCappedDuration(maxErrorDelay, retry.NewExponential(firstErrorDelay)))
	}
	delay, _ := p.errors.Next()
	return delay
}
