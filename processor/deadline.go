package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Pooled is an optional ability of a Source: it returns the pool from which each of its reads takes a
// connection, or nil if from none. A source without it is assumed to read from the pool of Config.Store.
type Pooled interface {
	Pool() *pgxpool.Pool
}

// Connections is how many connections of the pool of Config.Store the process needs at the same time while it
// runs: one for its lease, and one for a read unless the source reads elsewhere.
func (p *Process) Connections() int32 {
	if p.together() {
		return 2
	}
	return 1
}

// askTimeout bounds the time in which a pass asks the database before it has the lease: the look at the row,
// the read, the lock.
const askTimeout = 90 * time.Second

// overdueFraction is the fraction of the time after which the server frees the lock of a silent worker. A
// worker that has nothing left to deliver holds its lease for that fraction while the next read is not
// answered.
const overdueFraction = 2

// errOverdue reports that a read was not answered in time.
var errOverdue = errors.New("not answered in time")

// overdue adds errOverdue to an error of a pass whose time has passed.
func (p *Process) overdue(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != errOverdue {
		return err
	}
	return fmt.Errorf("the database has %w (%v)%s: %w", errOverdue, p.patience, crowded(p.config.Store), err)
}

// crowded returns a hint if every connection of the store's pool is in use.
func crowded(store *cursor.Store) string {
	stat := store.Pool().Stat()
	if stat.AcquiredConns() < stat.MaxConns() {
		return ""
	}
	return fmt.Sprintf("; all %d connections of the pool are in use: raise pool_max_conns", stat.MaxConns())
}
