package cursor

import (
	"errors"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// Errors of Look, Create, Past and Acquire.
var (
	// ErrUnknown reports that no cursor has that name.
	ErrUnknown = errors.New("no such cursor")
	// ErrDeleted reports that the cursor existed, and its row was deleted. Making it again would deliver
	// everything a second time: see operator.Operator.Forget.
	ErrDeleted = errors.New("the cursor's row was deleted")
	// ErrHeld reports that another worker holds the lease. This is routine.
	ErrHeld = errors.New("another worker holds the lease")
	// ErrPaused reports that an operator paused the process.
	ErrPaused = errors.New("the process is paused")
	// ErrHalted reports that the process halted on a record that cannot be delivered.
	ErrHalted = errors.New("the process is halted")
	// ErrExists reports that there is a cursor of that name.
	ErrExists = errors.New("there is a cursor of that name")
	// ErrRenamed reports that the cursor that had the name has another one now.
	ErrRenamed = errors.New("the cursor was renamed")
)

// ErrLeaseLost is the cause with which the context of a Lease ends when the right to deliver is gone. From then
// on, every method of that Lease returns it. Nothing is wrong with the record in flight: some worker delivers
// it again.
var ErrLeaseLost = errors.New("lease lost")

// ErrUnmoved is a further cause of a lease that ended at an advance: the row exists, but did not take the
// advance. Its epoch is another one, the position would not grow, or foreign code at the table prevents it: see
// Keepers. Nothing was committed.
var ErrUnmoved = errors.New("the advance changed no row")

// ErrUndone is a further cause of a lease that ended at an advance. The advance was committed, with all that
// was beside it, but the row is back where it was. An AFTER trigger on the UPDATE does that: see Keepers. The
// Store grants no lease for the process while its row takes no advance.
var ErrUndone = errors.New("the advance was committed, and undone in the same transaction")

// ErrStoodAside is a further cause of a lease that ended between two transactions, because a session waits for
// its row or came first. As a rule, that session is an operator's. What was delivered is written down.
var ErrStoodAside = errors.New("yielded to a session that waits for the row")

// ErrNoAnswer reports that the pool gave no connection, or the database no answer, in time. The database may
// have done what it was asked for.
var ErrNoAnswer = answer.ErrNone
