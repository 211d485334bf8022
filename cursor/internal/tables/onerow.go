package tables

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// OneRow ends a statement whose CTE "changed" is an UPDATE or INSERT. Unless that changed exactly one row, it
// raises 22P02, with the reason as its text. COMMIT travels in the same flush. Without the error, the server
// would run it even after a statement that changed no row, and commit everything else in the transaction.
//
// It also takes the time-out off that COMMIT. If a COMMIT is cut short while it waits for a synchronous
// standby, it reports success for what no standby has.
const OneRow = UnlessOne + `'the row is not as it was locked: rows changed: '` + Raise

// UnlessOne and Raise are OneRow with another reason: an SQL expression between them.
const (
	UnlessOne = `
SELECT
	pg_catalog.set_config('statement_timeout', '0', true),
	CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) 1 THEN 1 ELSE (`
	Raise = ` OPERATOR(pg_catalog.||) pg_catalog.count(*))::int END
FROM changed`
)

// Untaken begins the error that is raised if a row was changed, but has other values than it was given.
const Untaken = "the row did not take the change, which a trigger, a rule or a policy on its table may cause: "

// Took is an expression of RETURNING. It is the given expression if the condition holds of the row as it is
// now; otherwise it raises 22P02. A trigger may return its OLD row, or change NEW, and the count of rows does
// not show that.
func Took(condition, then string) string {
	return `CASE WHEN ` + condition + ` THEN ` + then +
		` ELSE ('` + Untaken + `' OPERATOR(pg_catalog.||) process_name)::pg_catalog.int4::pg_catalog.text END`
}

// NotTaken reports that Took raised the error.
func NotTaken(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, Untaken)
}

// ChangedOne reports whether a statement changed one row, or returned it: see OneRow.
func ChangedOne(result *pgconn.Result) bool { return result.CommandTag.RowsAffected() == 1 }

// NotAsLocked reports that OneRow raised the error.
func NotAsLocked(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "22P02" && !strings.Contains(pgErr.Message, NoEvent)
}

// NoEvent begins the error that is raised if an operator's command would leave no event.
const NoEvent = "no event is kept"

// Unaudited returns ErrNoEvent if a statement raised NoEvent, else err.
func Unaudited(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "22P02" && strings.Contains(pgErr.Message, NoEvent) {
		return ErrNoEvent
	}
	return err
}

// Committed reports whether the COMMIT among the results of a flush succeeded. PostgreSQL answers the COMMIT of
// a failed transaction with ROLLBACK, which is not an error.
func Committed(results []*pgconn.Result, at int) bool {
	return len(results) > at && results[at].Err == nil && results[at].CommandTag.String() == "COMMIT"
}
