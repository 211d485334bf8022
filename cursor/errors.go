package cursor

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// Errors of Look, Create and Acquire.
var (
	// ErrUnknown: no cursor has that name.
	ErrUnknown = errors.New("no such cursor")
	// ErrDeleted: the cursor had existed, and its row was deleted. Making it
	// again would deliver everything a second time: see Store.Forget.
	ErrDeleted = errors.New("the cursor's row was deleted")
	// ErrHeld: another worker holds the lease. Routine.
	ErrHeld = errors.New("another worker holds the lease")
	// ErrPaused: an operator paused the process.
	ErrPaused = errors.New("the process is paused")
	// ErrHalted: the process halted on a record that cannot be delivered.
	ErrHalted = errors.New("the process is halted")
	// ErrOldPrimary: the process halted on what may be an old primary, and the decision is not Fenced.
	ErrOldPrimary = errors.New("this server may be an old primary, where nothing must be decided")
)

// ErrLeaseLost is the cause with which the context of a Lease ends when the
// right to deliver is gone, and the error of any method of that Lease from then
// on. Nothing is wrong with the record in flight: some worker delivers it again.
var ErrLeaseLost = errors.New("lease lost")

// ErrUnmoved is a further cause of a lease that ended at an advance: the row was
// there, and does not have the advance, since the epoch is another one, the position
// does not grow, or code of others at the table keeps it: see Keepers. Nothing was
// committed.
var ErrUnmoved = errors.New("the advance changed no row")

// ErrUndone is a further cause of a lease that ended at an advance: it was committed, with
// all that was beside it, and the row is back where it was. A trigger behind the UPDATE does
// that: see Keepers. No lease is given for the process while the row takes no advance.
var ErrUndone = errors.New("the advance was committed, and undone in the same transaction")

// ErrStoodAside is a further cause of a lease that ended between two transactions,
// because a session waits for its row or came first: an operator, as a rule. What
// was delivered is written down.
var ErrStoodAside = errors.New("stood aside for a session that waits for the row")

// ErrNoAnswer: the pool gave no connection, or the database no answer, in time.
// What was asked for may have been done.
var ErrNoAnswer = answer.ErrNone

// errStandby: the server refused to begin a transaction that writes.
var errStandby = errors.New("the server is a standby")

// SQLSTATEs that an operator can fix, and how.
var fixes = map[string]string{
	"42P01":  "create the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema",
	"3F000":  "create the schema, then the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema",
	"42703":  "the tables are of another version: run `ordered-dispatcher migrate up -c FILE`",
	"42501":  "run, as the owner, what `ordered-dispatcher grants` prints for the role; `ordered-dispatcher doctor` names what else it lacks",
	readOnly: "the server is read-only: connect to the primary (target_session_attrs=read-write)",
}

// readOnly is the SQLSTATE of a server that is no primary, or no longer.
const readOnly = "25006"

// explain says what we were doing to which cursor, and the next step if there
// is one.
func (s *Store) explain(verb, process string, err error) error {
	return s.withFix(fmt.Sprintf("%s cursor %q", verb, process), err)
}

// withFix says what we were doing, and the next step if there is one. When the
// server is silent, or turns out to be no primary, every connection of the pool is
// closed: the next ones find out anew who is.
func (s *Store) withFix(doing string, err error) error {
	var pgErr *pgconn.PgError
	var code string
	switch {
	case errors.Is(err, errStandby):
		code = readOnly
	case errors.As(err, &pgErr):
		code = pgErr.Code
	}
	if code == readOnly || errors.Is(err, answer.ErrSilent) {
		s.pool.Reset()
	}
	if fix, ok := fixes[code]; ok {
		return fmt.Errorf("%s: %w; %s", doing, err, fix)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
