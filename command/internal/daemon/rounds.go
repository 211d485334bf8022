package daemon

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// rounds records whether any process can read, by its last round or its last advance. The looker has a connection of
// its own, which may be the only one to a server that answers. The map never changes.
type rounds map[string]*lastRound

// lastRound is how the last round of a process ended.
type lastRound struct {
	read   atomic.Int64 // when it could last read, in nanoseconds; 0: never
	failed atomic.Bool  // the last round failed
}

func (r rounds) observe(e processor.Event) {
	round, ok := r[e.Process]
	if !ok || e.Kind != processor.EventPass && e.Kind != processor.EventAdvance {
		return
	}
	failed := e.State == processor.StateError
	round.failed.Store(failed)
	if !failed {
		round.read.Store(time.Now().UnixNano())
	}
}

var errUnread = errors.New("no process can read its source: see the log")

// fault returns an error if no process can read: all of their last rounds failed, or none has ended since a look at
// the database failed. The failed look counts for as long as a look does, because the round of a process in a long
// call ends late.
func (r rounds) fault(failedLook time.Time) error {
	if time.Since(failedLook) > readyTime {
		failedLook = time.Time{}
	}
	for _, round := range r {
		if !round.failed.Load() && (failedLook.IsZero() || round.read.Load() > failedLook.UnixNano()) {
			return nil
		}
	}
	return errUnread
}
