package daemon

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// pulse tells a process that lives from one that is wedged: while nothing happens
// in it, it is neither making progress nor known to be idle, paused or halted.
type pulse struct {
	process string
	bound   time.Duration // on the silence of one that lives
	began   time.Time     // with its monotonic reading
	last    atomic.Int64  // how long after began something happened
	over    atomic.Bool   // the process has ended, as a drained one does
}

func newPulse(process string, bound time.Duration) *pulse {
	return &pulse{process: process, bound: bound, began: time.Now()}
}

// beat notes that something happened.
func (p *pulse) beat() { p.last.Store(int64(time.Since(p.began))) }

// fault says that the process is wedged; nil if it lives.
func (p *pulse) fault() error {
	silent := time.Since(p.began) - time.Duration(p.last.Load())
	if p.over.Load() || silent <= p.bound {
		return nil
	}
	return fmt.Errorf("process %q: nothing has happened for %v, and something should within %v", p.process, silent.Round(time.Second), p.bound)
}

// pulses are those of all processes, by name. The map never changes.
type pulses map[string]*pulse

func (p pulses) observe(e processor.Event) {
	if pulse, ok := p[e.Process]; ok {
		pulse.beat()
	}
}

// faults of all processes, as one error.
func (p pulses) faults() error {
	var all error
	for _, pulse := range p {
		all = errors.Join(all, pulse.fault())
	}
	return all
}
