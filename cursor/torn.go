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

// looks are when a store looked last for a torn session, by process.
type looks struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// lookFraction of tornAfter is between two looks.
const lookFraction = 8

// due reports whether it is time for another look, which it then is not.
func (l *looks) due(process string, interval time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last[process]) < interval {
		return false
	}
	if l.last == nil {
		l.last = map[string]time.Time{}
	}
	l.last[process] = time.Now()
	return true
}

// endTornSQL looks again, so that no other session of that pid is ended.
const endTornSQL = `/* cursor.end_torn */
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE pid = $1::int AND application_name = $2 AND state = 'active' AND wait_event_type = 'Client'`

// endTorn ends the session that holds the row of a process if it will never finish its
// command. The server does not: idle_in_transaction_session_timeout counts between two
// commands, and statement_timeout does not end a wait for a client. It returns ErrHeld,
// or a *TornError.
func (s *Store) endTorn(ctx context.Context, conn *pgxpool.Conn, process string, t terms) error {
	after := s.tornAfter(t)
	if !s.looks.due(process, after/lookFraction) {
		return ErrHeld
	}
	results, err := flushWithin(ctx, s.config.answerTimeout(), conn.Conn(), pin, s.lockersOf(process))
	if err != nil {
		return errors.Join(ErrHeld, err)
	}
	lockers, err := parseLockers(results[1])
	for _, l := range lockers {
		if l.Worker() && l.Unfinished > after {
			_, err := flushWithin(ctx, s.config.answerTimeout(), conn.Conn(), statement{sql: endTornSQL, args: []string{fmt.Sprint(l.PID), l.Application}}, commit)
			return &TornError{l, err}
		}
	}
	return errors.Join(ErrHeld, err)
}
