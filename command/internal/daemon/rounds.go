package daemon

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// rounds says whether any process can read: by its last round, or its last advance. The
// looker asks on a connection of its own, which may be the only one that leads to a
// server that answers. The map never changes.
type rounds map[string]*lastRound

// lastRound is how the last round of a process ended.
type lastRound struct {
	read   atomic.Int64 // when it could last read, in nanoseconds; 0: never
	failed atomic.Bool  // the last one did
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

// fault says that no process can read: all of their last rounds failed, or none has
// ended since a look at the database failed. That counts for as long as a look does: the
// round of a process that is in a long call ends late.
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
