package cursor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TornError: the lease is held by a session that sent one half of a command, and not
// the other for longer than any worker tries to. Its worker has given up, or is gone,
// or the network to it. It wraps ErrHeld.
type TornError struct {
	Holder Locker
	// Err is why the session could not be ended; nil: it was.
	Err error
}

func (e *TornError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%v: %s; it cannot be ended (%v): end it with %s", ErrHeld, e.Holder, e.Err, e.Holder.Fix())
	}
	return fmt.Sprintf("%v: %s; it was ended", ErrHeld, e.Holder)
}

// Unwrap returns ErrHeld, and Err if there is one.
func (e *TornError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrHeld, e.Err}
	}
	return []error{ErrHeld}
}

// tornAfter is after how long the session of a torn command is ended. The worker at its
// other end has given up by then: it does not wait longer than that for the answer
// to a command, nor for one of a delivery in the transaction. So this is what the
// server's time-out is for a session that is idle.
func (s *Store) tornAfter(t terms) time.Duration {
	if s.config.torn != 0 {
		return s.config.torn
	}
	return max(s.silence(t), commitTimeout) + operateMargin
}

// looks are when a store looked last at who holds a lease that it did not get, by process,
// and what it found.
type looks struct {
	mu    sync.Mutex
	last  map[string]time.Time
	found map[string]error
}

// lookFraction of tornAfter is between two looks.
const lookFraction = 8

// due reports whether it is time for another look, which it then is not; if not, it
// returns what the last one found.
func (l *looks) due(process string, interval time.Duration) (found error, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last[process]) < interval {
		return l.found[process], false
	}
	if l.last == nil {
		l.last, l.found = map[string]time.Time{}, map[string]error{}
	}
	l.last[process] = time.Now()
	return nil, true
}

// keep returns what a look found, and has the next ones do so that are not due.
func (l *looks) keep(process string, found error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found[process] = found
	return found
}

// endTornSQL looks again, so that no other session of that pid is ended.
const endTornSQL = `/* cursor.end_torn */
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE pid = $1::int AND application_name = $2 AND state = 'active' AND wait_event_type = 'Client'`

// held says who holds the row of a process, in a transaction that did not get it: it returns
// ErrHeld for a worker, and a *StrangerError for anything else. It ends a worker's session
// that will never finish its command, and returns a *TornError. The server does not end it:
// idle_in_transaction_session_timeout counts between two commands, and statement_timeout does
// not end a wait for a client.
func (s *Store) held(ctx context.Context, conn *pgxpool.Conn, process string, t terms) error {
	after := s.tornAfter(t)
	if found, due := s.looks.due(process, after/lookFraction); !due {
		return or(found, ErrHeld)
	}
	holder, err := s.lockerOf(ctx, conn, process)
	if err != nil || holder == nil {
		return errors.Join(ErrHeld, err)
	}
	switch {
	case holder.Worker() && holder.Unfinished > after:
		_, err := flushWithin(ctx, s.config.answerTimeout(), conn.Conn(), statement{sql: endTornSQL, args: []string{fmt.Sprint(holder.PID), holder.Application}}, commit)
		return &TornError{*holder, err}
	case holder.Worker():
		return s.looks.keep(process, ErrHeld)
	}
	again, err := s.stillHeld(ctx, conn, process)
	if err != nil || again == nil || again.Worker() || again.Transaction != holder.Transaction {
		return errors.Join(ErrHeld, err)
	}
	return s.looks.keep(process, &StrangerError{*again})
}

// namelessTime is for how long a worker may have the row before it has its name: a moment, and longer on a busy machine.
const namelessTime = 100 * time.Millisecond

// stillHeld is lockerOf after that time.
func (s *Store) stillHeld(ctx context.Context, conn *pgxpool.Conn, process string) (*Locker, error) {
	timer := time.NewTimer(namelessTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return s.lockerOf(ctx, conn, process)
	}
}

// lockerOf returns who holds the row of a process, or nil if that is not known.
func (s *Store) lockerOf(ctx context.Context, conn *pgxpool.Conn, process string) (*Locker, error) {
	results, err := flushWithin(ctx, s.config.answerTimeout(), conn.Conn(), pin, s.lockersOf(process))
	if err != nil {
		return nil, err
	}
	lockers, err := parseLockers(results[1])
	if err != nil || len(lockers) == 0 {
		return nil, err
	}
	return &lockers[0], nil
}

// StrangerError: the row of the cursor is locked by a transaction that is no worker's and no
// operator's. No worker delivers until it ends. It wraps ErrHeld.
type StrangerError struct{ Holder Locker }

func (e *StrangerError) Error() string {
	return fmt.Sprintf("the cursor's row is locked by %s, which is no worker; %s", e.Holder, e.Holder.Advice())
}

// Unwrap returns ErrHeld.
func (e *StrangerError) Unwrap() error { return ErrHeld }
