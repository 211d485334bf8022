package daemon

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
)

// alarmKey names an alarm of one target.
type alarmKey struct {
	process string
	event   notify.Event
	target  string
}

// told is what a target was last told of an alarm, as the table has it. The zero value: it was told nothing.
type told struct {
	status   notify.Status // Raised, Recovered or ""
	mark     string
	since    time.Time
	messages int64
	flaps    int
	at       time.Time // of the last message
	gone     time.Time // since when the cause is gone; zero while it is there
}

// sight is what a look found of one event of a process.
type sight struct {
	present bool
	mark    string // differs for another halt
	alarm   notify.Alarm
}

const (
	// flapTime is the time after a recovery in which the same alarm counts as flapping.
	flapTime = time.Hour
	// maxSettle bounds the time that a cause must be gone.
	maxSettle = time.Hour
	maxFlaps  = 12
)

// due returns the status of which a target is to be told now; "" if there is nothing to tell. now is the database's
// time.
//
//   - An alarm is raised as soon as its cause is seen. It stays raised until the recovery is told. So a process that
//     halts, goes on and halts again within that time causes no message, except about another halt after settle.
//   - A recovery is told only after an alarm, and after the cause was gone for a while.
func (t told) due(s sight, now time.Time, c Notify) notify.Status {
	raised := t.status == notify.Raised
	switch {
	case s.present && !raised:
		return notify.Raised
	case s.present && s.mark != t.mark && now.Sub(t.at) >= c.Settle:
		return notify.Raised
	case s.present && now.Sub(t.at) >= c.Remind:
		return notify.Reminded
	case !s.present && raised && !t.gone.IsZero() && now.Sub(t.gone) >= t.settle(c.Settle):
		return notify.Recovered
	default:
		return ""
	}
}

// settle returns how long the cause must be gone: twice as long with each time that the alarm came back.
func (t told) settle(first time.Duration) time.Duration {
	return min(first<<min(t.flaps, maxFlaps), maxSettle)
}

// turns reports whether the table has to be told that the cause has gone, or has come back.
func (t told) turns(s sight) bool {
	return t.status == notify.Raised && s.present != t.gone.IsZero()
}

// after returns what the table has once the target was told.
func (t told) after(status notify.Status, s sight, now time.Time) told {
	next := told{status: notify.Raised, mark: s.mark, since: s.alarm.Since, messages: t.messages + 1, flaps: t.flaps, at: now}
	switch {
	case status == notify.Recovered:
		next.status, next.mark, next.since = notify.Recovered, t.mark, t.since
	case t.status == notify.Raised && status == notify.Reminded:
		next.since = t.since
	case t.status == notify.Recovered && now.Sub(t.at) < flapTime:
		next.flaps = min(t.flaps+1, maxFlaps)
	case t.status != notify.Raised:
		next.flaps = 0
	}
	return next
}
