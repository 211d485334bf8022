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

// together reports whether the source reads through the pool of the store, and so from the store's server.
func (p *Process) together() bool {
	s, ok := p.config.Source.(Pooled)
	return !ok || s.Pool() == p.config.Store.Pool()
}

// askTimeout bounds the time in which a round asks the database before it has the lease: the look at the row,
// the read, the lock.
const askTimeout = 90 * time.Second

// overdueFraction is the fraction of the time after which the server frees the lock of a silent worker. A
// worker that has nothing left to deliver holds its lease for that fraction while the next read is not
// answered.
const overdueFraction = 2

// errOverdue reports that a read was not answered in time.
var errOverdue = errors.New("not answered in time")

// overdue adds errOverdue to an error of a round whose time has passed.
func (p *Process) overdue(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != errOverdue {
		return err
	}
	return fmt.Errorf("the database has %w (%v)%s: %w", errOverdue, p.patience, p.crowded(), err)
}

// crowded returns a hint if every connection of the store's pool is in use.
func (p *Process) crowded() string {
	stat := p.config.Store.Pool().Stat()
	if stat.AcquiredConns() < stat.MaxConns() {
		return ""
	}
	return fmt.Sprintf("; all %d connections of the pool are in use: raise pool_max_conns", stat.MaxConns())
}

// pending is a read that goes on in the background.
type pending struct {
	after  cursor.Position
	began  time.Time
	done   chan struct{}
	cancel context.CancelFunc
	page   Page  // once done
	err    error // once done
}

// begin starts to read the records after a position.
func (s *shift) begin(after cursor.Position, limit int) *pending {
	ctx, cancel := context.WithTimeout(s.run, s.patience)
	r := &pending{after: after, began: time.Now(), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.done)
		defer cancel()
		if r.page, r.err = s.read(ctx, after, limit); r.err == nil {
			r.err = s.onServer(s.lease, r.page)
		}
	}()
	return r
}

// drop waits until a read that is not needed any more is done, or overdue. The lease is given back already; a
// source allows only one reader at a time.
func (s *shift) drop(r *pending) {
	if !s.doneInTime(r) {
		r.cancel()
	}
	<-r.done
}

// bound is how long a worker waits for a read, from its beginning.
func (s *shift) bound() time.Duration { return s.config.Store.LeaseTimeout() / overdueFraction }

// doneInTime waits for a read until it is overdue, and reports whether it is done.
func (s *shift) doneInTime(r *pending) bool {
	timer := time.NewTimer(max(0, s.bound()-time.Since(r.began)))
	defer timer.Stop()
	select {
	case <-r.done:
		return true
	case <-timer.C:
	}
	select {
	case <-r.done: // done at the same time
		return true
	default:
		return false
	}
}

// await waits for a read while the lease is held, until it is overdue. Then it releases the lease, for a worker
// whose reads are answered.
func (s *shift) await(r *pending) (Page, error) {
	if s.doneInTime(r) {
		s.noteLog(r.page)
		return r.page, s.ofServer(r.err)
	}
	crowded := s.crowded() // while the lease still counts
	s.lease.Release()
	r.cancel()
	<-r.done
	return Page{}, fmt.Errorf("read after position %q: %w (%v): the lease is let go, so that another worker can deliver%s", r.after, errOverdue, s.bound(), crowded)
}
