package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// pulse distinguishes a process that lives from one that is stuck. While nothing happens in a process, it makes no
// progress, and it is not known to be idle, paused or halted.
type pulse struct {
	process string
	bound   time.Duration // how long a process that lives may be silent
	began   time.Time     // with its monotonic reading
	last    atomic.Int64  // how long after began something happened
	over    atomic.Bool   // the process has ended, as after a drain
}

func newPulse(process string, bound time.Duration) *pulse {
	return &pulse{process: process, bound: bound, began: time.Now()}
}

// beat notes that something happened.
func (p *pulse) beat() { p.last.Store(int64(time.Since(p.began))) }

// fault returns an error if the process is stuck; nil if it lives.
func (p *pulse) fault() error {
	silent := time.Since(p.began) - time.Duration(p.last.Load())
	if p.over.Load() || silent <= p.bound {
		return nil
	}
	return fmt.Errorf("process %q: its worker has done nothing for %v, and the limit is %v", p.process, silent.Round(time.Second), p.bound)
}

// pulses are the pulses of all processes, by name. The map never changes.
type pulses map[string]*pulse

func (p pulses) observe(e processor.Event) {
	if pulse, ok := p[e.Process]; ok {
		pulse.beat()
	}
}

// faults joins the faults of all processes in one error.
func (p pulses) faults() error {
	var all error
	for _, pulse := range p {
		all = errors.Join(all, pulse.fault())
	}
	return all
}

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

// inspected records for each source whether it was inspected once without an error. A daemon is ready only after
// that. A process that is paused or halted, or that another worker runs, does not read its source. So a missing grant
// would show only when this worker takes over. The processes are those of watched, by name; the map never changes.
type inspected map[string]*atomic.Bool

// fault names the first process whose source could not be inspected yet; nil if there is none. A process that has
// ended needs no source.
func (i inspected) fault(ended func(process string) bool) error {
	var first string
	for process, done := range i {
		if !done.Load() && !ended(process) && (first == "" || process < first) {
			first = process
		}
	}
	if first == "" {
		return nil
	}
	return fmt.Errorf("process %q: its source could not be inspected yet: see the log, or run doctor", first)
}

// inspect looks at the sources that were not inspected yet. It logs a problem if it differs from the last one.
func (l *looker) inspect(ctx context.Context) {
	for process, w := range l.watched {
		done := l.inspected[process]
		if done.Load() {
			continue
		}
		err := answer.Within(ctx, lookTimeout, func(ctx context.Context) error {
			findings, err := w.count.Inspect(ctx)
			at := slices.IndexFunc(findings, func(f table.Finding) bool { return f.Severity == table.Refuse })
			if err == nil && at >= 0 {
				err = fmt.Errorf("%s", findings[at])
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			done.Store(true)
		case l.logged.changes(process, err):
			l.log.Warn("the source cannot be inspected: the worker is not ready until it can", "process", process, "err", err)
		}
	}
}
