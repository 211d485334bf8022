package processor

import (
	"time"

	"github.com/sethvargo/go-retry"
)

const (
	// patienceFraction of a poll a worker leaves to the one before it. It waits
	// the rest between two looks, so that a take-over comes within one poll.
	patienceFraction = 4
	// minPoll is the shortest wait between two looks; it is the least Config.Poll, too.
	minPoll = 5 * time.Millisecond
	// restPoll bounds the wait of a process that an operator must set going.
	restPoll = time.Second
	// asideDelay leaves the session for which a worker stood aside the time to
	// wake up and take the lock.
	asideDelay = 50 * time.Millisecond

	firstErrorDelay  = 100 * time.Millisecond
	maxErrorDelay    = 5 * time.Second
	errorDelayJitter = 20 // percent
	// longestErrorDelay is maxErrorDelay with the jitter.
	longestErrorDelay = maxErrorDelay + maxErrorDelay*errorDelayJitter/100
)

// pace says how long to wait between two passes. What comes is noticed after at
// most half of the time for which nothing came, and a fence that lets records
// through after a tenth of the time for which it held them.
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

func (p *pace) afterError() time.Duration {
	if p.errors == nil {
		p.errors = retry.WithJitterPercent(errorDelayJitter, retry.WithCappedDuration(maxErrorDelay, retry.NewExponential(firstErrorDelay)))
	}
	delay, _ := p.errors.Next()
	return delay
}
