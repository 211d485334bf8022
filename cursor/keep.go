package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A worker hears from its server at least every Timeout/5, or asks; after
// Timeout/2 without an answer it gives up. The server waits for the whole
// Timeout, so that it frees the lock only when nobody delivers under it.
const (
	pingFraction   = 5
	giveUpFraction = 2
)

// watchInterval is how often a lease asks the kernel whether something has come
// from the server. The end of a session (pg_terminate_backend, a restart) lets the
// next worker in at once; a call that is under way then ends within two of these.
const watchInterval = 25 * time.Millisecond

// keep pings the server while a sink call, or nothing, goes on, and looks whether
// the server has ended the session.
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
			// Whoever holds the connection hears from the server himself.
			if l.mu.TryLock() {
				_ = l.ping()
				l.mu.Unlock()
			}
		}
	}
}

// Held returns nil if the lease is known to be held at this moment, and ends it
// otherwise. A worker that was stopped and continued, or starved, learns here
// that its time is over, before it sends another record; so does one whose
// session was ended, which lets another worker in at once.
func (l *Lease) Held() error {
	// Again and again: an answer is old if the worker was stopped before it took it up.
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

// undisturbed reports that nothing has come from the server that was not asked
// for: neither the end of the session nor a word about it. It asks the kernel
// alone.
func (l *Lease) undisturbed() bool {
	if !l.mu.TryLock() {
		return true // whoever holds the connection hears from the server himself
	}
	defer l.mu.Unlock()
	return l.conn == nil || quiet(l.conn.Conn().PgConn().Conn())
}

// silence is for how long the server has not been heard from, at most.
func (l *Lease) silence() time.Duration {
	return time.Since(l.began) - time.Duration(l.answered.Load())
}

// pingSaid begins a ping. It is a comment, which the server shows in pg_stat_activity: an operator
// sees there for how long one call goes on, and not only since when there was no checkpoint.
const pingSaid = "-- ping: handed over before us: "

// ping asks the server for a sign of life. An answer proves that the session
// and the transaction in it are alive, however long ago the last one was. The
// caller holds mu.
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
			l.store.pool.Reset() // the server is silent: the other connections lead to it, too
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

// lose ends the lease and returns the cause. The caller holds mu; Release lets
// go of the connection.
func (l *Lease) lose(cause error) error {
	if !errors.Is(cause, ErrLeaseLost) {
		cause = fmt.Errorf("%w: %w", ErrLeaseLost, cause)
	}
	l.cancel(cause)
	return cause
}
