package cursor

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// oneRow ends a statement whose CTE "changed" is an UPDATE or INSERT. Unless that changed exactly one row, it
// raises 22P02, with the reason as its text. COMMIT travels in the same flush. Without the error, the server
// would run it even after a statement that changed no row, and commit everything else in the transaction.
//
// It also takes the time-out off that COMMIT. If a COMMIT is cut short while it waits for a synchronous
// standby, it reports success for what no standby has.
const oneRow = unlessOne + `'the row is not as it was locked: rows changed: '` + raise

const (
	unlessOne = `
SELECT
	pg_catalog.set_config('statement_timeout', '0', true),
	CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) 1 THEN 1 ELSE (`
	raise = ` OPERATOR(pg_catalog.||) pg_catalog.count(*))::int END
FROM changed`
)

// untaken begins the error that is raised if a row was changed, but has other values than it was given.
const untaken = "the row did not take the change, as one of the triggers, rules and policies at its table may decide: "

// took is an expression of RETURNING. It is the given expression if the condition holds of the row as it is
// now; otherwise it raises 22P02. A trigger may return its OLD row, or change NEW, and the count of rows does
// not show that.
func took(condition, then string) string {
	return `CASE WHEN ` + condition + ` THEN ` + then +
		` ELSE ('` + untaken + `' OPERATOR(pg_catalog.||) process_name)::pg_catalog.int4::pg_catalog.text END`
}

// notTaken reports that took raised the error.
func notTaken(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, untaken)
}

// changedOne reports whether a statement changed one row, or returned it: see oneRow.
func changedOne(result *pgconn.Result) bool { return result.CommandTag.RowsAffected() == 1 }

// errNotAsLocked reports that a statement changed no row, or its transaction did not commit.
var errNotAsLocked = errors.New("the row is not as it was locked")

// notAsLocked reports that oneRow raised the error.
func notAsLocked(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && !strings.Contains(pgErr.Message, noEvent)
}

// noEvent begins the error that is raised if an operator's command would leave no event.
const noEvent = "no event is kept"

// unaudited returns ErrNoEvent if a statement raised noEvent, else err.
func unaudited(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, noEvent) {
		return ErrNoEvent
	}
	return err
}

// committed reports whether the COMMIT among the results of a flush succeeded. PostgreSQL answers the COMMIT of
// a failed transaction with ROLLBACK, which is not an error.
func committed(results []*pgconn.Result, at int) bool {
	return len(results) > at && results[at].Err == nil && results[at].CommandTag.String() == "COMMIT"
}

// or returns the first error, or the second if there is none.
func or(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
