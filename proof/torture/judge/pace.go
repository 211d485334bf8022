package judge

import "time"

// tenure is one worker in one epoch.
type tenure struct {
	worker string
	epoch  int64
}

// limitTick is the time whose records may go out together.
const limitTick = 100 * time.Millisecond

// checkPace: a worker hands over no more than the limit lets, and behind so many failures in a row it waits before each
// further attempt (I13). What is held up on the wire arrives at other times than it was sent: such attempts prove nothing.
func (v *Verdict) checkPace(f *feed) {
	if f.Limit == 0 && f.Breaker == 0 {
		return
	}
	tenures := map[tenure][]*attempt{}
	for _, a := range f.attempts {
		if f.has(a.Worker) {
			tenures[tenure{a.Worker, a.Epoch}] = append(tenures[tenure{a.Worker, a.Epoch}], a)
		}
	}
	for _, attempts := range tenures {
		if f.Limit > 0 {
			v.checkLimit(f, attempts)
		}
		if f.Breaker > 0 {
			v.checkBreaker(f, attempts)
		}
	}
}

// checkLimit: between the arrivals of two attempts no more were admitted than the limit gives in that time, and those that
// may go out together. The next one is sent only behind the answer to the one before.
func (v *Verdict) checkLimit(f *feed, attempts []*attempt) {
	together := max(1, int(time.Duration(f.Limit)*limitTick/time.Second))
	due := time.Duration(0) // when the next attempt could come at the earliest, if nothing had been saved up
	step := time.Second / time.Duration(f.Limit)
	var first time.Duration
	for i, a := range attempts {
		if i == 0 || a.T >= due {
			due, first = a.T, a.T
		} else if due-a.T > time.Duration(together)*step && !f.disturbed(first, a.T) {
			v.broken("I13", f.Name, "attempt %d at %v comes %v before the limit of %d in a second lets it, by what was received since %v", a.ID, a.T, due-a.T, f.Limit, first)
			due = a.T
		}
		due += step
	}
}

// checkBreaker: the answers are the receiver's own. When a worker gave up an attempt without an answer is not known, so the next
// one proves nothing.
func (v *Verdict) checkBreaker(f *feed, attempts []*attempt) {
	failures := 0
	var answered time.Duration
	for _, a := range attempts {
		if wait := a.T - answered; failures >= f.Breaker && wait < f.Cooldown && !f.disturbed(answered-aWhile, a.T) {
			v.broken("I13", f.Name, "attempt %d at %v comes %v behind failure %d in a row, and the breaker waits %v", a.ID, a.T, wait, failures, f.Cooldown)
		}
		switch {
		case a.acknowledged(), refusesUs(a.status): // the latter halts, and an operator begins anew
			failures = 0
		case a.status > 0:
			failures, answered = failures+1, a.repliedAt
		default:
			failures, answered = failures+1, a.T-f.Cooldown
		}
	}
}

// has reports whether it is a worker, and no operator who replays something.
func (f *feed) has(worker string) bool {
	for _, w := range f.workers {
		if w == worker {
			return true
		}
	}
	return false
}
