package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A worker hears from its server at least every Timeout/5, or asks; after Timeout/2 without an answer it gives
// up. The server waits for the whole Timeout. So it frees the lock only when no worker delivers under it any
// more.
const (
	pingFraction   = 5
	giveUpFraction = 2
)

// watchInterval is how often a lease asks the kernel whether something has come from the server. The end of a
// session (pg_terminate_backend, a restart) lets the next worker in at once, so a call that is under way must
// end: it does after at most two intervals.
const watchInterval = 25 * time.Millisecond

// keep pings the server during a sink call and while the worker is idle, and watches whether the server has
// ended the session.
func (l *Lease) keep() {
	defer close(l.done)
	ticker := time.NewTicker(l.store.config.Timeout / pingFraction)
	defer ticker.Stop()
	watch := time.NewTicker(l.store.config.watch)
	defer watch.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-watch.C:
			if !l.undisturbed() {
				_ = l.pingAlone()
			}
		case <-ticker.C:
			// The holder of the connection hears from the server itself.
			if l.mu.TryLock() {
				_ = l.ping()
				l.mu.Unlock()
			}
		}
	}
}

// Held returns nil if the lease is known to be held at this moment, and otherwise ends it. A worker that was
// stopped and continued, or starved, learns here that its time is over, before it sends another record. So does
// a worker whose session was ended, which lets another worker in at once.
func (l *Lease) Held() error {
	// Ask repeatedly: an answer is already old if the worker was stopped before it read it.
	for l.silence() >= l.store.config.Timeout/giveUpFraction || !l.undisturbed() {
		if err := l.pingAlone(); err != nil {
			return err
		}
	}
	l.handed.Store(int64(time.Since(l.began)))
	return context.Cause(l.ctx)
}

// pingAlone is ping for a caller that does not hold mu.
func (l *Lease) pingAlone() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ping()
}

// undisturbed reports that the server has sent nothing unasked: neither the end of the session nor a message
// about it. It only asks the kernel.
func (l *Lease) undisturbed() bool {
	if !l.mu.TryLock() {
		return true // the holder of the connection hears from the server itself
	}
	defer l.mu.Unlock()
	return l.conn == nil || quiet(l.conn.Conn().PgConn().Conn())
}

// silence returns for how long, at most, the worker has not heard from the server.
func (l *Lease) silence() time.Duration {
	return time.Since(l.began) - time.Duration(l.answered.Load())
}

// pingSaid begins a ping. It is a comment, which the server shows in pg_stat_activity. There an operator sees
// how long one call has been going on, and not only how long there was no checkpoint.
const pingSaid = "-- ping: handed over before us: "

// ping asks the server for a sign of life. An answer proves that the session and its transaction are alive,
// however long ago the last one was. The caller holds mu.
func (l *Lease) ping() error {
	if err := l.over(); err != nil {
		return err
	}
	timeout := max(l.store.config.Timeout/giveUpFraction-l.silence(), l.store.config.Timeout/pingFraction)
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	sent := time.Since(l.began)
	said := pingSaid + strconv.FormatInt((sent-time.Duration(l.handed.Load())).Microseconds(), 10)
	if _, err := l.conn.Conn().PgConn().Exec(ctx, said).ReadAll(); err != nil {
		if ctx.Err() != nil && l.ctx.Err() == nil {
			l.store.db.Pool.Reset() // the server is silent, and the other connections lead to it, too
		}
		return l.lose(fmt.Errorf("ping: %w", err))
	}
	l.answered.Store(int64(sent))
	return nil
}

// over returns why the lease has ended, or nil. The caller holds mu.
func (l *Lease) over() error {
	if err := context.Cause(l.ctx); err != nil {
		return err
	}
	if l.conn == nil {
		return ErrLeaseLost
	}
	return nil
}

// lose ends the lease and returns the cause. The caller holds mu; Release gives the connection back.
func (l *Lease) lose(cause error) error {
	if !errors.Is(cause, ErrLeaseLost) {
		cause = fmt.Errorf("%w: %w", ErrLeaseLost, cause)
	}
	l.cancel(cause)
	return cause
}
