package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// forgetSQL needs the lock of the row, held before.
const forgetSQL = `/* cursor.forget */
DELETE FROM {schema}.cursor
WHERE process_name = $1`

// Forget gives up the cursor of a process. It deletes the row, and the name is free for a new cursor. That one
// begins where its Config.Start says, and sends again all records after that. The audit and the dead letters
// stay. If the row is gone already, deleted by hand or renamed, Forget only frees the name; it returns
// cursor.ErrExists if the row comes back in that moment. It refuses a cursor that is halted over its database
// (cursor.ClassRestored, cursor.ClassOldPrimary, cursor.ClassReset) with cursor.ErrHalted: the decision about that halt begins numbers and
// a history, and the next cursor of that name goes on from them. d needs a reason.
//
// A running worker loses its lease, and makes no new cursor until it is started again.
func (o *Operator) Forget(ctx context.Context, process string, d cursor.Decision) (Change, error) {
	a := action{name: "forget", needsReason: true, moves: true, apply: func(row cursor.Row) (cursor.Row, error) {
		if f := row.Failure; f != nil && (f.Restored() || f.Class == cursor.ClassReset) {
			return row, fmt.Errorf("%w over its database, and a new cursor would use numbers and dedup keys again: decide on that halt first, with `ordered-dispatcher retry %s` if nothing else is to be done. It halted because %s",
				cursor.ErrHalted, visible.Shell(row.Process), row.Failure.Error)
		}
		return cursor.Row{Process: row.Process}, nil
	}}
	change, err := o.decide(ctx, process, d, a, func(conn *pgx.Conn, c Change, d cursor.Decision) error {
		results, err := tables.Flush(ctx, conn,
			o.forgotten(c.Before, d), // it reads the row, so it comes first
			o.db.Statement(forgetSQL, process))
		if err != nil {
			return err
		}
		if deleted := results[1]; !tables.ChangedOne(deleted) {
			return errChanged
		}
		return commitDecision(ctx, conn)
	})
	if errors.Is(err, cursor.ErrUnknown) {
		d, _ = d.Reasoned() // decide has checked it
		return o.forgetGone(ctx, process, d, err)
	}
	return change, err
}

func (o *Operator) forgotten(row cursor.Row, d cursor.Decision) tables.Statement {
	return o.db.Statement(decisionEventSQL, row.Process, d.Actor, "forget", d.Reason, string(row.Position), tables.Null, numbers(row, "state", string(row.State)))
}

// forgetGone frees a name whose row is gone.
func (o *Operator) forgetGone(ctx context.Context, process string, d cursor.Decision, unknown error) (Change, error) {
	past := o.store.Past(ctx, process)
	switch {
	case past == nil:
		return Change{}, unknown
	case errors.Is(past, cursor.ErrExists):
		return Change{}, o.db.Explain("forget", process, exists(process)) // made or put back at this moment
	case !errors.Is(past, cursor.ErrDeleted) && !errors.Is(past, cursor.ErrRenamed):
		return Change{}, past
	}
	change := Change{Before: cursor.Row{Process: process}, After: cursor.Row{Process: process}, Changed: true}
	if d.DryRun {
		return change, nil
	}
	_, err := o.db.Once(ctx, tables.CommitTimeout, tables.Begin, o.db.Statement(forgetGoneSQL, process, d.Actor, d.Reason))
	if err != nil {
		return Change{}, o.db.Explain("forget", process, fmt.Errorf("write the audit: %w", tables.Unaudited(err)))
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
SELECT CASE WHEN (SELECT count(*) FROM event) = (SELECT count(*) FROM free) THEN 1 ELSE ('` + tables.NoEvent + `, rows: ' || (SELECT count(*) FROM event))::int END`
