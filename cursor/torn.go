package cursor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// TornError reports that the lease is held by a session that sent half of a command. It has not sent the rest
// for longer than any worker tries to. Its worker has given up or is gone, or the network to it is down. It
// wraps ErrHeld.
type TornError struct {
	Holder Locker
	// Err is why the session could not be ended; nil if it was ended.
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

// tornAfter returns how old a torn command must be before its session is ended. The worker at the other end has
// given up by then: it does not wait longer for the answer to a command, nor for the answer to one of a
// delivery in the transaction. For a torn session, this does what the server's time-out does for an idle one.
func (s *Store) tornAfter(t terms) time.Duration {
	if s.config.torn != 0 {
		return s.config.torn
	}
	return max(s.silence(t), tables.CommitTimeout) + tables.Margin
}

// looks records, by process, when a store last looked for the holder of a lease that it did not get, and what
// it found.
type looks struct {
	mu    sync.Mutex
	last  map[string]time.Time
	found map[string]error
}

// lookFraction is the fraction of tornAfter between two looks.
const lookFraction = 8

// due reports whether it is time for another look, and then counts this as that look. If it is not, due returns
// what the last look found.
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

// keep returns what a look found, and keeps it for the calls of due before the next look.
func (l *looks) keep(process string, found error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found[process] = found
	return found
}

// endTornSQL checks the session again, so that no other session that has got its pid is ended.
const endTornSQL = `/* cursor.end_torn */
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE pid = $1::int AND application_name = $2 AND state = 'active' AND wait_event_type = 'Client'`

// held finds who holds the row of a process, in a transaction that did not get it. It returns ErrHeld for a
// worker, and a *StrangerError for anything else. If a worker's session will never finish its command, held
// ends that session and returns a *TornError. The server itself does not end it:
// idle_in_transaction_session_timeout counts between two commands, and statement_timeout does not end a wait
// for a client.
func (s *Store) held(ctx context.Context, conn *pgxpool.Conn, process string, t terms) error {
	after := s.tornAfter(t)
	if found, due := s.looks.due(process, after/lookFraction); !due {
		return tables.Or(found, ErrHeld)
	}
	holder, err := s.lockerOf(ctx, conn, process)
	if err != nil || holder == nil {
		return errors.Join(ErrHeld, err)
	}
	switch {
	case holder.Worker() && holder.Unfinished > after:
		_, err := tables.FlushWithin(ctx, s.db.Timeout, conn.Conn(), tables.Statement{SQL: endTornSQL, Args: []string{fmt.Sprint(holder.PID), holder.Application}}, tables.Commit)
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

// namelessTime is how long a worker may have the row before its application name is set: usually a moment, and
// longer on a busy machine.
const namelessTime = 100 * time.Millisecond

// stillHeld is lockerOf after namelessTime.
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

// lockerOf returns the transaction that holds the row of a process, or nil if it is not known.
func (s *Store) lockerOf(ctx context.Context, conn *pgxpool.Conn, process string) (*Locker, error) {
	results, err := tables.FlushWithin(ctx, s.db.Timeout, conn.Conn(), tables.Pin, s.lockersOf(process))
	if err != nil {
		return nil, err
	}
	lockers, err := parseLockers(results[1])
	if err != nil || len(lockers) == 0 {
		return nil, err
	}
	return &lockers[0], nil
}

// StrangerError reports that a transaction which is neither a worker's nor an operator's has locked the
// cursor's row. No worker delivers until it ends. It wraps ErrHeld.
type StrangerError struct{ Holder Locker }

func (e *StrangerError) Error() string {
	return fmt.Sprintf("the cursor's row is locked by %s, which is no worker; %s", e.Holder, e.Holder.Advice())
}

// Unwrap returns ErrHeld.
func (e *StrangerError) Unwrap() error { return ErrHeld }
