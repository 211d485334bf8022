package cursor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// forgetSQL needs the lock of the row, held before.
const forgetSQL = `/* cursor.forget */
DELETE FROM {schema}.cursor
WHERE process_name = $1`

// Forget gives up the cursor of a process. It deletes the row, and the name is free for a new cursor. That one
// begins where its Config.Start says, and sends again all records after that. The audit and the dead letters
// stay. If the row is gone already, deleted by hand or renamed, Forget only frees the name; it returns
// ErrExists if the row comes back in that moment. It refuses a cursor that is halted over its database
// (ClassRestored, ClassOldPrimary, ClassReset) with ErrHalted: the decision about that halt begins numbers and
// a history, and the next cursor of that name goes on from them. d needs a reason.
//
// A running worker loses its lease, and makes no new cursor until it is started again.
func (s *Store) Forget(ctx context.Context, process string, d Decision) (Change, error) {
	a := action{name: "forget", needsReason: true, moves: true, apply: func(row Row) (Row, error) {
		if f := row.Failure; f != nil && (f.Restored() || f.Class == ClassReset) {
			return row, fmt.Errorf("%w over its database, and a new cursor would use numbers and dedup keys again: decide on that first, by `ordered-dispatcher retry %s` if nothing else is to be done. It halted since %s",
				ErrHalted, visible.Shell(row.Process), row.Failure.Error)
		}
		return Row{Process: row.Process}, nil
	}}
	change, err := s.decide(ctx, process, d, a, func(conn *pgxpool.Conn, c Change, d Decision) error {
		results, err := flush(ctx, conn.Conn(),
			s.forgotten(c.Before, d), // it reads the row, so it comes first
			statement{sql: s.sql(forgetSQL), args: []string{process}})
		if err == nil && results[1].CommandTag.RowsAffected() != 1 {
			err = errors.New("the locked row changed under its lock")
		}
		if err != nil {
			return err
		}
		return commitDecision(ctx, conn)
	})
	if errors.Is(err, ErrUnknown) {
		return s.forgetGone(ctx, process, d.withDefaults(), err)
	}
	return change, err
}

func (s *Store) forgotten(row Row, d Decision) statement {
	return statement{sql: s.sql(decisionEventSQL), args: []string{row.Process, d.Actor, "forget", d.Reason, string(row.Position), null, numbers(row, "state", string(row.State))}}
}

// forgetGone frees a name whose row is gone.
func (s *Store) forgetGone(ctx context.Context, process string, d Decision, unknown error) (Change, error) {
	past := s.Past(ctx, process)
	switch {
	case past == nil:
		return Change{}, unknown
	case errors.Is(past, ErrExists):
		return Change{}, s.explain("forget", process, exists(process)) // made or put back at this moment
	case !errors.Is(past, ErrDeleted) && !errors.Is(past, ErrRenamed):
		return Change{}, past
	}
	change := Change{Before: Row{Process: process}, After: Row{Process: process}, Changed: true}
	if d.DryRun {
		return change, nil
	}
	_, err := s.once(ctx, commitTimeout, begin, statement{sql: s.sql(forgetGoneSQL), args: []string{process, d.Actor, d.Reason}})
	if err != nil {
		return Change{}, s.explain("forget", process, fmt.Errorf("write the audit: %w", unaudited(err)))
	}
	return change, nil
}

const forgetGoneSQL = `/* cursor.forget_gone */
WITH free AS (
	SELECT WHERE NOT EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name = $1)
), event AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason)
	SELECT $1, $2, 'forget', $3 FROM free
	RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM event) = (SELECT count(*) FROM free) THEN 1 ELSE ('` + noEvent + `, rows: ' || (SELECT count(*) FROM event))::int END`
