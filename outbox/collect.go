package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
)

// scanTimeout bounds the look at one table, all of which may have to be read.
const scanTimeout = 10 * time.Minute

// Headers is a column with the headers of records, a json or a jsonb.
type Headers struct {
	Table  pgx.Identifier
	Column string
}

// headersColumn is the column of the table that Create makes.
const headersColumn = "headers"

// referredSQL reads a whole table, unless an index on (headers ->> 'claim-check') helps. It locks nothing.
const referredSQL = `/* outbox.referred */
SELECT %[2]s ->> 'claim-check'
FROM %[1]s
WHERE %[2]s ->> 'claim-check' = ANY ($1::text[])`

// escapedSQL is for a table in which referredSQL fails: a json may have escapes that no text can have, such as \u0000, and
// ->> reads them all, in other members, too. It leaves every row with such an escape to the program.
const escapedSQL = `/* outbox.escaped */
SELECT CASE WHEN strpos(%[2]s::text, chr(92) || 'u') > 0 THEN %[2]s::text ELSE json_build_object('claim-check', %[2]s ->> 'claim-check')::text END
FROM %[1]s
WHERE CASE WHEN strpos(%[2]s::text, chr(92) || 'u') > 0 THEN true ELSE %[2]s ->> 'claim-check' = ANY ($1::text[]) END`

// openSQL returns the age of the oldest transaction that this role can see. Add puts an object after its transaction
// has begun, so an object of an open transaction is not older than that.
const openSQL = `/* outbox.open */
SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8
FROM pg_catalog.pg_stat_activity
WHERE datname = current_database()`

// clocksApart is how far the clocks of the store, of the server and of this program may be apart. Each of them measures
// an age. A file system's clock is some milliseconds late even on one machine.
const clocksApart = time.Minute

// Orphans calls each for the objects of a store that were put more than age ago and that no row refers to: those of
// rolled back transactions, and of rows that were deleted. Name every column that may hold headers of such rows: those
// of the outbox, of a partition that was detached, of an archive, of the dispatcher's dead_letter. This role needs SELECT
// on it. Up to 1,000 objects are looked for in one snapshot of all tables. A row that moves from one to another meanwhile
// is seen, unless it leaves a table by a TRUNCATE.
//
// age must be longer than any transaction that writes records. Orphans leaves out the objects of older transactions that
// are still open, as far as the role may see them: pg_read_all_stats shows those of other roles. Prepared transactions
// it never sees. Each object is at least a minute old.
func Orphans(ctx context.Context, db DB, store claim.Store, age time.Duration, rows []Headers, each func(claim.Object) error) error {
	age, err := beyondOpen(ctx, db, age)
	if err != nil {
		return err
	}
	return claim.Orphans(ctx, store, age, referredIn(db, rows), each)
}

// Collect removes from Config.Claims what Orphans finds. It looks for references in the table of the outbox, and in the
// column headers of others: name every table that may hold rows of it. It also returns beside an error what it had
// removed until then. Each table needs its schema.
func (o *Outbox) Collect(ctx context.Context, db DB, age time.Duration, others ...pgx.Identifier) (removed claim.Removed, err error) {
	if o.config.Claims == nil {
		return removed, errors.New("outbox: collect: there are no Claims")
	}
	if err := o.qualified(); err != nil {
		return removed, err
	}
	if age, err = beyondOpen(ctx, db, age); err != nil {
		return removed, err
	}
	rows := []Headers{{o.config.Table, headersColumn}}
	for _, table := range others {
		rows = append(rows, Headers{table, headersColumn})
	}
	return claim.Collect(ctx, o.config.Claims, age, referredIn(db, rows))
}

// beyondOpen returns an age that no open transaction has reached. It asks before the rows are looked at: what commits
// after this is among them, or young.
func beyondOpen(ctx context.Context, db DB, age time.Duration) (time.Duration, error) {
	if age <= 0 {
		return 0, errors.New("outbox: collect: the age must be longer than any transaction, such as 24 hours")
	}
	open, err := openFor(ctx, db)
	if err != nil {
		return 0, fmt.Errorf("collect: look for open transactions: %w", err)
	}
	return max(age, open+clocksApart), nil
}

// referredIn returns a function that returns the names to which rows refer, and perhaps others. One snapshot has each row
// at one place. Tables that are read one by one may each lack a row that moves: no order of them is right for both ways.
func referredIn(db DB, rows []Headers) func(ctx context.Context, names []string) ([]string, error) {
	return func(ctx context.Context, names []string) (all []string, err error) {
		tx, err := snapshot(ctx, db)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback(ctx) }() // if it fails, the connection is closed
		for _, h := range rows {
			found, err := h.referred(ctx, tx, names)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", h.Table.Sanitize(), err)
			}
			all = append(all, found...)
		}
		return all, nil
	}
}

func (h Headers) referred(ctx context.Context, tx pgx.Tx, names []string) (found []string, err error) {
	sql := func(format string) string {
		return fmt.Sprintf(format, h.Table.Sanitize(), pgx.Identifier{h.Column}.Sanitize())
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint, to go on with this snapshot after an error
		found, err = queryAll(ctx, tx, scanTimeout, pgx.RowTo[string], sql(referredSQL), names)
		return err
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Code, dataException) {
		return queryAll(ctx, tx, scanTimeout, decoded, sql(escapedSQL), names)
	}
	return found, err
}

// dataException is the class of the server's errors about a value.
const dataException = "22"

// decoded returns the name to which headers refer; "" if they refer to none.
func decoded(row pgx.CollectableRow) (string, error) {
	text, err := pgx.RowTo[string](row)
	if err != nil {
		return "", err
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal([]byte(text), &members)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return "", nil // it is no object, so it has no members
	}
	value := members[claim.Header]
	var name string
	if json.Unmarshal(value, &name) != nil {
		name = string(value)
	}
	return name, err
}

// openFor is how long the oldest transaction has been open.
func openFor(ctx context.Context, db DB) (time.Duration, error) {
	tx, err := snapshot(ctx, db)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // if it fails, the connection is closed
	seconds, err := queryAll(ctx, tx, stepTimeout, pgx.RowTo[float64], openSQL)
	if err != nil {
		return 0, err
	}
	return time.Duration(seconds[0] * float64(time.Second)), nil
}

// snapshot begins a transaction that changes nothing, whatever code a table makes it run. Its first query takes the
// snapshot. Roll it back.
func snapshot(ctx context.Context, db DB) (pgx.Tx, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, settingsSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return tx, nil
}

func queryAll[T any](ctx context.Context, tx pgx.Tx, timeout time.Duration, each pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, each)
}
