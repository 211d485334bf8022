package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// leaseVectors are the gauges of this worker's leases.
type leaseVectors struct{ open, bound *prometheus.GaugeVec }

func newLeaseVectors(f factory) leaseVectors {
	return leaseVectors{
		open: f.gauge("lease_open_seconds", "How long the transaction of this worker's lease has been open; 0 if there is none. "+
			"Meanwhile vacuum removes no newer dead row of the database."),
		bound: f.gauge("lease_open_bound_seconds", "How long that transaction may be open, by the time-out of the sink and the calls between two checkpoints."),
	}
}

// lease is the lease of one process, as its events show it.
type lease struct {
	name  string
	since atomic.Int64 // when its transaction began, in nanoseconds; 0: none is open
	leaseVectors
}

// observe follows the transactions. Each advance begins a new one, and so does each failure that is written to the
// row.
func (l *lease) observe(e processor.Event) {
	now := time.Now().UnixNano()
	switch {
	case e.Kind == processor.EventLease:
		l.since.Store(now)
	case e.Kind == processor.EventRelease:
		l.since.Store(0)
	case e.Kind == processor.EventAdvance, e.Kind == processor.EventAttempt && e.Class != "":
		if since := l.since.Load(); since != 0 {
			l.since.CompareAndSwap(since, now)
		}
	}
}

// gauge sets the gauge for a scrape.
func (l *lease) gauge(now time.Time) {
	open := 0.0
	if since := l.since.Load(); since != 0 {
		open = max(0, now.Sub(time.Unix(0, since)).Seconds())
	}
	l.open.WithLabelValues(l.name).Set(open)
}

// LeaseBound sets how long a transaction of the process's lease may be open.
func (m *Metrics) LeaseBound(process string, bound time.Duration) {
	if p, ok := m.processes[process]; ok {
		p.lease.bound.WithLabelValues(process).Set(bound.Seconds())
	}
}
