package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Errors of Rename, Forget and Prepare.
var (
	// ErrExists reports that there is a cursor of that name.
	ErrExists = errors.New("there is a cursor of that name")
	// ErrRenamed reports that the cursor that had the name has another one now.
	ErrRenamed = errors.New("the cursor was renamed")
)

// renameSQL needs the lock of the row. A new epoch begins, so that receivers can distinguish what a worker of
// the old name still has on the wire from what the next one sends.
var renameSQL = `/* cursor.rename */
UPDATE {schema}.cursor
SET process_name = $2, epoch = $3
WHERE process_name = $1
RETURNING ` + took(`process_name = $2`, `epoch::text`) + `, sequence`

// renameLettersSQL gives the dead letters the new name. It finds the open ones by their index. lettersLeftSQL
// raises an error if one kept the old name.
const (
	renameLettersSQL = `/* cursor.rename_letters */ UPDATE {schema}.dead_letter SET process_name = $2 WHERE process_name = $1`
	lettersLeftSQL   = `/* cursor.letters_left */
WITH changed AS (SELECT FROM {schema}.dead_letter WHERE process_name = $1)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE ('` + untaken + `dead letters left behind: ` + `'` + raise
)

// Rename gives the cursor of a process another name. The position and the state stay, a new epoch begins, and
// the dead letters and the history follow. So does the sequence, unless a cursor had the new name before: then
// it goes on past the last number of that cursor, with a gap of 10,000. A worker that runs under the old name
// loses its lease, and finds no cursor from then on. Rename returns ErrExists if a cursor has the new name
// already.
//
// Receivers see the new name with the next record. The records keep their dedup keys.
func (s *Store) Rename(ctx context.Context, from, to string, d Decision) (Change, error) {
	a := action{name: "rename", moves: true, apply: func(row Row) (Row, error) {
		if to == "" || to == from {
			return row, fmt.Errorf("the new name %q must be another one, and not empty", to)
		}
		row.Process = to
		row.Epoch++
		return row, nil
	}}
	if d.DryRun {
		if _, err := s.Look(ctx, to); !errors.Is(err, ErrUnknown) {
			return Change{}, s.refusal(a, from, errors.Join(err, exists(to)))
		}
	}
	var renamed Row
	change, err := s.decide(ctx, from, d, a, func(conn *pgxpool.Conn, c Change, d Decision) (err error) {
		renamed, err = s.writeRename(ctx, conn, c, d)
		return err
	})
	if err == nil && !d.DryRun {
		change.After = renamed
	}
	return change, err
}

func exists(process string) error { return fmt.Errorf("%w: %q", ErrExists, process) }

// writeRename returns the row as it is after the rename: a trigger moves its numbers past those of an earlier
// cursor of that name.
func (s *Store) writeRename(ctx context.Context, conn *pgxpool.Conn, c Change, d Decision) (Row, error) {
	from, to, at := c.Before.Process, c.After.Process, string(c.After.Position)
	results, err := flush(ctx, conn.Conn(),
		statement{sql: s.sql(renameSQL), args: []string{from, to, c.After.Epoch.text()}},
		statement{sql: s.sql(renameLettersSQL), args: []string{from, to}},
		statement{sql: "SET CONSTRAINTS ALL IMMEDIATE"},
		statement{sql: s.sql(lettersLeftSQL), args: []string{from}})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "23505" {
		return c.After, exists(to)
	}
	if err == nil && len(results[0].Rows) != 1 {
		err = errors.New("the locked row changed under its lock")
	}
	if err != nil {
		return c.After, err
	}
	renamed, p := c.After, parser{values: results[0].Rows[0]}
	renamed.Epoch, renamed.Sequence = Epoch(p.int(0)), p.int(1)
	// The order of these two events matters. Read in the order of their ids, the history of the new name ends
	// where that of the old one goes on.
	_, err = flush(ctx, conn.Conn(),
		statement{sql: s.sql(decisionEventSQL), args: []string{to, d.Actor, "rename", d.Reason, at, at, numbers(renamed, "old", from)}},
		statement{sql: s.sql(decisionEventSQL), args: []string{from, d.Actor, "renamed", d.Reason, at, at, numbers(c.Before, "new", to)}})
	if err := errors.Join(p.err, err); err != nil {
		return renamed, err
	}
	return renamed, commitDecision(ctx, conn)
}

// numbers is the detail of an event that ends or begins the life of a name. With its numbers, no later cursor
// of the name uses a number twice.
func numbers(row Row, key, value string) string {
	detail, _ := json.Marshal(map[string]any{key: value, "epoch": row.Epoch, "sequence": row.Sequence}) // only texts and numbers
	return string(detail)
}

// commitDecision makes a decision durable. The COMMIT has no time-out: see oneRow.
func commitDecision(ctx context.Context, conn *pgxpool.Conn) error {
	results, err := flush(ctx, conn.Conn(), statement{sql: "SELECT pg_catalog.set_config('statement_timeout', '0', true)"}, commit)
	if err == nil && results[1].CommandTag.String() != "COMMIT" {
		return errors.New("the transaction was rolled back")
	}
	return uncertain(err)
}
