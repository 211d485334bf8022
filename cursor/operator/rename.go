package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// renameSQL needs the lock of the row. A new epoch begins, so that receivers can distinguish what a worker of
// the old name still has on the wire from what the next one sends.
var renameSQL = `/* cursor.rename */
UPDATE {schema}.cursor
SET process_name = $2, epoch = $3
WHERE process_name = $1
RETURNING ` + tables.Took(`process_name = $2`, `epoch::text`) + `, sequence`

// renameLettersSQL gives the dead letters the new name. It finds the open ones by their index. lettersLeftSQL
// raises an error if one kept the old name.
const (
	renameLettersSQL = `/* cursor.rename_letters */ UPDATE {schema}.dead_letter SET process_name = $2 WHERE process_name = $1`
	lettersLeftSQL   = `/* cursor.letters_left */
WITH changed AS (SELECT FROM {schema}.dead_letter WHERE process_name = $1)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE ('` + tables.Untaken + `dead letters left behind: ` + `'` + tables.Raise
)

// renameAmendedSQL gives the amendments the new name. Those of an earlier process of that name do not count any more.
const (
	staleAmendedSQL  = `/* cursor.stale_amended */ DELETE FROM {schema}.cursor_amended WHERE process_name = $1`
	renameAmendedSQL = `/* cursor.rename_amended */ UPDATE {schema}.cursor_amended SET process_name = $2 WHERE process_name = $1`
)

// Rename gives the cursor of a process another name. The position and the state stay, a new epoch begins, and
// the dead letters, the amendments and the history follow. So does the sequence, unless a cursor had the new name before: then
// it goes on past the last number of that cursor, with a gap of 10,000. A worker that runs under the old name
// loses its lease, and finds no cursor from then on. Rename returns cursor.ErrExists if a cursor has the new name
// already.
//
// Receivers see the new name with the next record. The records keep their dedup keys.
func (o *Operator) Rename(ctx context.Context, from, to string, d cursor.Decision) (Change, error) {
	a := action{name: "rename", moves: true, apply: func(row cursor.Row) (cursor.Row, error) {
		if to == "" || to == from {
			return row, fmt.Errorf("the new name %q must differ from the old one and must not be empty", to)
		}
		row.Process = to
		row.Epoch++
		return row, nil
	}}
	if d.DryRun {
		if _, err := o.store.Look(ctx, to); !errors.Is(err, cursor.ErrUnknown) {
			return Change{}, o.refusal(a, from, errors.Join(err, exists(to)))
		}
	}
	var renamed cursor.Row
	change, err := o.decide(ctx, from, d, a, func(conn *pgx.Conn, c Change, d cursor.Decision) (err error) {
		renamed, err = o.writeRename(ctx, conn, c, d)
		return err
	})
	if err == nil && !d.DryRun {
		change.After = renamed
	}
	return change, err
}

// writeRename returns the row as it is after the rename: a trigger moves its numbers past those of an earlier
// cursor of that name.
func (o *Operator) writeRename(ctx context.Context, conn *pgx.Conn, c Change, d cursor.Decision) (cursor.Row, error) {
	from, to, at := c.Before.Process, c.After.Process, string(c.After.Position)
	results, err := tables.Flush(ctx, conn,
		o.db.Statement(renameSQL, from, to, text(c.After.Epoch)),
		o.db.Statement(renameLettersSQL, from, to),
		o.db.Statement(staleAmendedSQL, to),
		o.db.Statement(renameAmendedSQL, from, to),
		tables.Statement{SQL: "SET CONSTRAINTS ALL IMMEDIATE"},
		o.db.Statement(lettersLeftSQL, from))
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "23505" {
		return c.After, exists(to)
	}
	if err != nil {
		return c.After, err
	}
	updated := results[0]
	if !tables.ChangedOne(updated) {
		return c.After, errChanged
	}
	renamed, p := c.After, tables.Parser{Values: updated.Rows[0]}
	renamed.Epoch, renamed.Sequence = cursor.Epoch(p.Int(0)), p.Int(1)
	// The order of these two events matters. Read in the order of their ids, the history of the new name ends
	// where that of the old one goes on.
	_, err = tables.Flush(ctx, conn,
		o.db.Statement(decisionEventSQL, to, d.Actor, "rename", d.Reason, at, at, renamedFrom(from, c.Before.Sequence, renamed)),
		o.db.Statement(decisionEventSQL, from, d.Actor, "renamed", d.Reason, at, at, numbers(c.Before, "new", to)))
	if err := errors.Join(p.Err, err); err != nil {
		return renamed, err
	}
	return renamed, commitDecision(ctx, conn)
}

// numbers is the detail of an event that ends or begins the life of a name. With its numbers, no later cursor
// of the name uses a number twice.
func numbers(row cursor.Row, key, value string) string {
	detail, _ := json.Marshal(map[string]any{key: value, "epoch": row.Epoch, "sequence": row.Sequence}) // only texts and numbers
	return string(detail)
}

// renamedFrom is the detail of the event under the new name. The sequence may have leapt: see Since.
func renamedFrom(old string, before int64, row cursor.Row) string {
	detail, _ := json.Marshal(map[string]any{"old": old, "epoch": row.Epoch, "sequence": row.Sequence, fromSequence: before, toSequence: row.Sequence})
	return string(detail)
}
