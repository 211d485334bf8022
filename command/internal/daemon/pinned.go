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

// leaseBound is for how long a transaction of a process's lease may be open; 0 if its
// sink cannot be made here.
func (c Config) leaseBound(p Process, pool *pgxpool.Pool, store *cursor.Store) time.Duration {
	process, _, err := p.build(dependencies{config: c, pool: pool, store: store, stdout: io.Discard})
	if err != nil {
		return 0
	}
	return process.MaxLease()
}

// pinned says what an open transaction of a lease means to others.
func pinned(bound time.Duration) string {
	limit := "the time-out of the sink, for each call between two checkpoints, ends it"
	if bound > 0 {
		limit = fmt.Sprintf("the sink's `timeout` and `checkpoint` bound it to %s", round(bound))
	}
	return "While its transaction is open, vacuum removes no newer dead row of this database, and CREATE INDEX CONCURRENTLY may wait for it: " + limit
}

// longBound is above what a transaction of a lease may last without a word of the doctor.
const longBound = 5 * time.Minute

// pins finds what holds vacuum back: a lease that has been open for long, or may be.
func (d *doctor) pins(ctx context.Context, p Process, s Status) error {
	bound := d.config.leaseBound(p, d.pool, d.store)
	if bound > longBound {
		d.find(p.Name, Note, "lower the sink's `timeout` or `checkpoint`, if the tables of this database are updated much",
			"a transaction of its lease may be open for %s, by `timeout` and `checkpoint`: so long vacuum removes no newer dead row of this database, and CREATE INDEX CONCURRENTLY may wait", round(bound))
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
			d.find(p.Name, Note, "see what it waits for in pg_stat_activity", "its worker waits for the database: a command of %s goes on for %s", visible.Line(l.String()), round(l.Running))
		default:
			d.find(p.Name, Note, "see what the receiver does, or lower the sink's `timeout`",
				"a call of the receiver goes on since %s. %s (%s)", moment(l.Since), pinned(bound), visible.Line(l.String()))
		}
	}
	return nil
}
