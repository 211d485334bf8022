package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// holders are our own sessions that have held the lock of a cursor's row for long.
type holders struct {
	// operators have held a lock for longer than a decision takes.
	operators []cursor.Locker
	// veiled are workers' sessions. The role that asks cannot see since when they have the lock. They were in the
	// same transaction at two looks, and nothing has been written to the row for long.
	veiled []cursor.Locker
}

// longHolders finds these sessions. The role that asks may not be allowed to see when a transaction began. Then it
// looks a second time.
func longHolders(ctx context.Context, store *cursor.Store, lockers []cursor.Locker, pause func(context.Context, time.Duration)) (holders, error) {
	var long holders
	var hidden []cursor.Locker
	for _, l := range lockers {
		switch {
		case !l.Worker() || l.Torn():
		case l.Operator() && l.Age > longCall:
			long.operators = append(long.operators, l)
		case l.TimesHiddenFrom != "" && (l.Operator() || l.Unchanged > longCall):
			hidden = append(hidden, l)
		}
	}
	if len(hidden) == 0 {
		return long, nil
	}
	pause(ctx, stays)
	now, err := store.Lockers(ctx)
	for _, l := range now {
		switch {
		case !slices.ContainsFunc(hidden, func(was cursor.Locker) bool { return was.PID == l.PID && was.Transaction == l.Transaction }):
		case l.Operator():
			long.operators = append(long.operators, l)
		default:
			long.veiled = append(long.veiled, l)
		}
	}
	return long, err
}

// lasting leaves out strangers that have a row at one look and not at a second one in the same transaction. A worker
// has the row for a moment before it has its name.
func lasting(ctx context.Context, store *cursor.Store, lockers []cursor.Locker, pause func(context.Context, time.Duration)) ([]cursor.Locker, error) {
	stranger := func(l cursor.Locker) bool { return !l.Worker() }
	if !slices.ContainsFunc(lockers, stranger) {
		return lockers, nil
	}
	pause(ctx, stays)
	now, err := store.Lockers(ctx)
	return slices.DeleteFunc(lockers, func(l cursor.Locker) bool {
		return stranger(l) && !slices.ContainsFunc(now, func(n cursor.Locker) bool {
			return n.PID == l.PID && n.GID == l.GID && n.Transaction == l.Transaction
		})
	}), err
}

// of returns the first of some lockers that has the row of a process; nil if there is none.
func of(process string, all []cursor.Locker) *cursor.Locker {
	if at := slices.IndexFunc(all, func(l cursor.Locker) bool { return l.Process == process }); at >= 0 {
		return &all[at]
	}
	return nil
}

// adviceOn is the next step for an operator's session. If the role cannot see since when the session is open, it may
// be an ordinary decision.
func adviceOn(l cursor.Locker) (next, sql string) {
	if l.TimesHiddenFrom == "" || l.HiddenFrom != "" {
		return l.Step()
	}
	return waitForIt + "; " + sinceWhen(l.TimesHiddenFrom), ""
}

// sinceWhen explains that a role cannot see since when a transaction is open, and how to see it.
func sinceWhen(role string) string {
	return fmt.Sprintf("role %s cannot see since when it is open; to see it: %s", visible.Line(pgx.Identifier{role}.Sanitize()), cursor.GrantStats(role))
}

// lasts reports whether the first record that waits has waited for longer than a call lasts, as far as is known. A
// worker that was idle has an old row, and may have begun a moment ago. A worker with many calls between two
// checkpoints leaves the row unchanged for as long as these take. The doubt lasts no longer than longBound.
func (s Status) lasts() bool {
	if s.veiled.Unchanged <= min(longCall*time.Duration(max(s.bounds.calls, 1)), longBound) {
		return false
	}
	return s.Lag == nil || s.Lag.Records > 0 && (s.Lag.Age == nil || *s.Lag.Age > longCall)
}

// hidden describes that a worker has the row, what the role cannot see of that, and what to do.
func (s Status) hidden() (problem, next string) {
	l := *s.veiled
	problem = fmt.Sprintf("its worker %s has the cursor's row, in session %s, and has written nothing there since %s. Role %s cannot see since when it has the row, or whether the worker waits for the receiver or the database",
		visible.Line(s.Holder), visible.Line(l.String()), moment(s.UpdatedAt), visible.Line(pgx.Identifier{l.TimesHiddenFrom}.Sanitize()))
	if l.HiddenFrom != "" {
		return problem, l.Fix()
	}
	return problem, "ask again as a superuser, or after " + cursor.GrantStats(l.TimesHiddenFrom)
}
