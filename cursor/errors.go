package cursor

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// Errors of Look, Create and Acquire.
var (
	// ErrUnknown reports that no cursor has that name.
	ErrUnknown = errors.New("no such cursor")
	// ErrDeleted reports that the cursor existed, and its row was deleted. Making it again would deliver
	// everything a second time: see Store.Forget.
	ErrDeleted = errors.New("the cursor's row was deleted")
	// ErrHeld reports that another worker holds the lease. This is routine.
	ErrHeld = errors.New("another worker holds the lease")
	// ErrPaused reports that an operator paused the process.
	ErrPaused = errors.New("the process is paused")
	// ErrHalted reports that the process halted on a record that cannot be delivered.
	ErrHalted = errors.New("the process is halted")
	// ErrOldPrimary reports that the process halted on a server that may be an old primary, and the decision is
	// not Fenced.
	ErrOldPrimary = errors.New("this server may be an old primary, where nothing must be decided")
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
var ErrStoodAside = errors.New("stood aside for a session that waits for the row")

// ErrNoAnswer reports that the pool gave no connection, or the database no answer, in time. The database may
// have done what it was asked for.
var ErrNoAnswer = answer.ErrNone

// errStandby reports that the server refused to begin a transaction that writes.
var errStandby = errors.New("the server is a standby")

// fixes maps SQLSTATEs that an operator can fix to what to do.
var fixes = map[string]string{
	"42P01":  "create the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema",
	"3F000":  "create the schema, then the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema",
	"42703":  "the tables are of another version: run `ordered-dispatcher migrate up -c FILE`",
	"42501":  "run, as the owner, what `ordered-dispatcher grants` prints for the role; `ordered-dispatcher doctor` names what else it lacks",
	readOnly: "the server is read-only: connect to the primary (target_session_attrs=read-write)",
}

// readOnly is the SQLSTATE of a server that is not, or no longer, a primary.
const readOnly = "25006"

// explain adds to an error what we were doing to which cursor, and the next step if there is one.
func (s *Store) explain(verb, process string, err error) error {
	return s.withFix(fmt.Sprintf("%s cursor %q", verb, process), err)
}

// withFix adds to an error what we were doing, and the next step if there is one. When the server is silent, or
// turns out not to be a primary, it closes every connection of the pool: the next ones find out anew where the
// primary is.
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
