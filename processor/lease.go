package processor

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// MaxLease is for how long a transaction of the lease is open, at most, if each sink call keeps its time-out.
// It lasts over the calls between two checkpoints, and before them over a read that the worker waits for.
// Meanwhile the server removes no row version of the database that was deleted or updated since.
func (p *Process) MaxLease() time.Duration {
	calls, each := p.CallsPerLease(), p.config.Timeout
	if p.config.Dispatch.atomic() { // plus the check of deferred constraints, in the same transaction
		calls, each = calls+1, each+txMargin
	}
	return p.config.Store.LeaseTimeout()/overdueFraction + time.Duration(calls)*each
}

// CallsPerLease is how many sink calls a transaction of the lease may last for: those between two checkpoints.
func (p *Process) CallsPerLease() int { return p.config.Dispatch.calls(&p.config) }

// acquire takes the lease. If a promotion is to be noted, it notes that first.
func (p *Process) acquire(ctx context.Context) (*cursor.Lease, error) {
	lease, err := p.lock(ctx)
	var promoted *cursor.PromotedError
	if !errors.As(err, &promoted) {
		return lease, err
	}
	if err := p.promote(ctx, promoted); err != nil {
		return nil, err
	}
	return p.lock(ctx)
}

// lock locks the cursor's row; for InTx in a transaction that also takes the effects.
func (p *Process) lock(ctx context.Context) (*cursor.Lease, error) {
	if p.config.Dispatch.atomic() {
		return p.config.Store.AcquireTx(ctx, p.config.Process, p.config.Timeout)
	}
	return p.config.Store.Acquire(ctx, p.config.Process)
}

// holding reports to Observe that the process has the lease. It returns a function that gives the lease back
// and reports that, once.
func (p *Process) holding(lease *cursor.Lease) (release func()) {
	p.config.observe(Event{Kind: EventLease})
	held := true
	return func() {
		lease.Release()
		if held {
			held = false
			p.config.observe(Event{Kind: EventRelease})
		}
	}
}
