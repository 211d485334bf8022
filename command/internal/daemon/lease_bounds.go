package daemon

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// leaseBounds are the bounds of a transaction of a process's lease; zero if its sink cannot be made here.
type leaseBounds struct {
	open  time.Duration // how long it may be open
	calls int           // how many calls of the receiver it may last
}

func (c Config) leaseBounds(p Process, pool *pgxpool.Pool, store *cursor.Store) leaseBounds {
	process, _, err := p.build(dependencies{config: c, pool: pool, store: store, stdout: io.Discard})
	if err != nil {
		return leaseBounds{}
	}
	return leaseBounds{process.MaxLease(), process.CallsPerLease()}
}

// call returns how long one call of the receiver has gone on for certain. It is the time that the worker reported, or
// a part of the time since the last checkpoint, which may have been many short calls.
func (b leaseBounds) call(l cursor.Locker) time.Duration {
	return max(min(l.Call, l.Age), l.Age/time.Duration(max(b.calls, 1)))
}

// longCall reports whether one call of a worker goes on for long.
func (b leaseBounds) longCall(l cursor.Locker) bool { return b.call(l) > longCall }

// calledAt returns when that call began.
func (b leaseBounds) calledAt(l cursor.Locker) time.Time { return l.Since.Add(l.Age - b.call(l)) }

// pinned describes how an open transaction of a lease affects others.
func pinned(b leaseBounds) string {
	limit := "the time-out of the sink, for each call between two checkpoints, ends it"
	if b.open > 0 {
		limit = fmt.Sprintf("the sink's `timeout` and `checkpoint` bound it to %s", round(b.open))
	}
	return "While its transaction is open, vacuum removes no newer dead row of this database, and CREATE INDEX CONCURRENTLY may wait for it: " + limit
}

// longBound is how long a transaction of a lease may last before the doctor reports it.
const longBound = 5 * time.Minute

// pins finds leases that hold back vacuum: a lease that has been open for long, or may be.
func (d *doctor) pins(ctx context.Context, p Process, s Status) error {
	bounds := d.config.leaseBounds(p, d.pool, d.store)
	s.bounds = bounds
	if bounds.open > longBound {
		d.find(p.Name, Note, "lower the sink's `timeout` or `checkpoint`, if the tables of this database are updated much",
			"a transaction of its lease may be open for %s, by `timeout` and `checkpoint`: meanwhile vacuum removes no newer dead row of this database, and CREATE INDEX CONCURRENTLY may wait", round(bounds.open))
	}
	if s.veiled != nil && s.lasts() {
		problem, next := s.hidden()
		d.find(p.Name, Note, next, "%s", problem)
	}
	lockers, err := d.store.Lockers(ctx)
	if err != nil {
		return err
	}
	for _, l := range lockers {
		switch {
		case l.Process != p.Name || !longLease(l):
		case l.Replicating:
			d.find(p.Name, Warn, cursor.KeepReplicating, "%s: %s", visible.Line(l.String()), cursor.WhileReplicating)
		case slowDatabase(l):
			d.find(p.Name, Note, "see what it waits for in pg_stat_activity", "its worker waits for the database: a command of %s has been running for %s", visible.Line(l.String()), round(l.Running))
		case bounds.longCall(l):
			d.find(p.Name, Note, "see what the receiver does, or lower the sink's `timeout`",
				"a call of the receiver has been running since %s. %s (%s)", moment(bounds.calledAt(l)), pinned(bounds), visible.Line(l.String()))
		}
	}
	return nil
}
