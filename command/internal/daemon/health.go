package daemon

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
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
	return fmt.Errorf("process %q: nothing has happened for %v, and something should within %v", p.process, silent.Round(time.Second), p.bound)
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
