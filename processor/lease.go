package processor

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// MaxLease is for how long a transaction of the lease is open, at most, if each sink call keeps its time-out.
// It lasts over the calls between two checkpoints, and before them over a read that the worker waits for.
// Meanwhile the server removes no row version of the database that was deleted or updated since.
func (p *Process) MaxLease() time.Duration {
	d, calls, each := p.config.Dispatch, p.CallsPerLease(), p.config.Timeout
	if !d.outlives { // plus the check of deferred constraints, in the same transaction
		calls, each = calls+1, each+txMargin
	}
	return p.config.Store.LeaseTimeout()/overdueFraction + time.Duration(calls)*each
}

// CallsPerLease is how many sink calls a transaction of the lease may last for: those between two checkpoints.
func (p *Process) CallsPerLease() int {
	if d := p.config.Dispatch; !d.batch {
		return d.chunk(p.config)
	}
	return 1
}

// holding reports to Observe that the process has the lease. It returns a function that gives the lease back
// and reports that, once.
func (p *Process) holding(lease *cursor.Lease) (release func()) {
	p.observe(Event{Kind: EventLease})
	held := true
	return func() {
		lease.Release()
		if held {
			held = false
			p.observe(Event{Kind: EventRelease})
		}
	}
}
