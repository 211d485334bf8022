package cursor

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// oneRow ends a statement whose CTE "changed" is an UPDATE or INSERT. It raises
// 22P02, with the reason as its text, unless that changed exactly one row: COMMIT
// travels in the same flush, and the server would run it after a statement that
// changed none, with all else that the transaction did.
//
// It also takes the time-out off that COMMIT. Cut short while it waits for a
// synchronous standby, a COMMIT would claim what no standby has.
const oneRow = unlessOne + `'the row is not as it was locked: rows changed: '` + raise

const (
	unlessOne = `
SELECT
	pg_catalog.set_config('statement_timeout', '0', true),
	CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) 1 THEN 1 ELSE (`
	raise = ` OPERATOR(pg_catalog.||) pg_catalog.count(*))::int END
FROM changed`
)

// untaken begins what is raised where a row is changed, and keeps other values than it was
// given.
const untaken = "the row did not take the change, as one of the triggers, rules and policies at its table may decide: "

// took is an expression of RETURNING: the given one if the condition holds of the row as it
// is now, and else 22P02 is raised. A trigger may return its OLD row, or change NEW, and the
// count of rows does not say so.
func took(condition, then string) string {
	return `CASE WHEN ` + condition + ` THEN ` + then +
		` ELSE ('` + untaken + `' OPERATOR(pg_catalog.||) process_name)::pg_catalog.int4::pg_catalog.text END`
}

// notTaken reports that took raised.
func notTaken(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, untaken)
}

// changedOne reports whether a statement changed one row, or returned it: see oneRow.
func changedOne(result *pgconn.Result) bool { return result.CommandTag.RowsAffected() == 1 }

// errNotAsLocked: a statement changed no row, or its transaction did not commit.
var errNotAsLocked = errors.New("the row is not as it was locked")

// notAsLocked reports that oneRow raised.
func notAsLocked(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && !strings.Contains(pgErr.Message, noEvent)
}

// noEvent begins what is raised where an operator's command would leave no event.
const noEvent = "no event is kept"

// unaudited is ErrNoEvent if that was raised, else err.
func unaudited(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, noEvent) {
		return ErrNoEvent
	}
	return err
}

// committed reports whether the COMMIT among the results of a flush succeeded. A
// transaction that has failed answers COMMIT with ROLLBACK, which is no error.
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
