package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// ErrNotAmended reports that the record was not amended, so there is nothing to take back.
var ErrNotAmended = errors.New("the record was not amended")

// Amended is a record and the payload that it gets.
type Amended struct {
	// Position, DedupKey, Table and RecordID are those of the record: see cursor.Amendment.
	Position        cursor.Position
	DedupKey        string
	Table, RecordID string
	// Row is the payload that the row has. The amendment keeps its digest.
	Row []byte
	// Payload is delivered instead. It is whole: neither compressed nor a claim check.
	Payload []byte
}

// amendSQL keeps the newest payload of a record. The audit has an event for each.
const amendSQL = `/* cursor.amend */
WITH changed AS (
	INSERT INTO {schema}.cursor_amended (process_name, position, dedup_key, table_name, record_id, original, actor, reason, payload)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::bytea)
	ON CONFLICT (process_name, position, dedup_key) DO UPDATE SET
		payload = excluded.payload,
		original = excluded.original,
		actor = excluded.actor,
		db_user = excluded.db_user,
		reason = excluded.reason,
		at = clock_timestamp()
	RETURNING ` + `CASE WHEN payload = $9::bytea THEN '' ELSE ('` + tables.Untaken + `' OPERATOR(pg_catalog.||) process_name)::pg_catalog.int4::pg_catalog.text END` + `
)` + tables.OneRow

// Amend has the failing record delivered with another payload, and makes it due at once, as Retry does. The row of the
// source stays as it is, and so do the record's dedup key and its number. Every later delivery of the record has that
// payload, also after a seek back. d needs a reason.
//
// It returns ErrNotFailing if no record is failing, or if the receiver refused us (cursor.ClassRefused): the record was
// not at fault. It returns cursor.ErrMoved if another record is failing. A worker of an older version ignores
// amendments, and delivers the row.
func (o *Operator) Amend(ctx context.Context, process string, with Amended, d cursor.Decision) (Change, error) {
	if d.Expect == nil {
		d.Expect = &with.Position
	}
	a := action{name: "amend", needsReason: true, ofRecord: true, apply: func(row cursor.Row) (cursor.Row, error) {
		if err := amendable(row, with.Position); err != nil {
			return row, err
		}
		row.Epoch++ // a worker looks for amended records once in each epoch
		return cleared(row), nil
	}}
	return o.decide(ctx, process, d, a, func(conn *pgx.Conn, c Change, d cursor.Decision) error {
		keep := o.db.Statement(amendSQL, process, string(with.Position), with.DedupKey, with.Table, with.RecordID, digest(with.Row), d.Actor, d.Reason)
		keep.Last = with.Payload
		return o.writeWith(ctx, conn, c, a, d, map[string]any{
			"record_id": with.RecordID, "record_position": with.Position, "dedup_key": with.DedupKey, "bytes": len(with.Payload),
		}, keep)
	})
}

// amendable returns why the failing record cannot be amended, or nil.
func amendable(row cursor.Row, at cursor.Position) error {
	switch {
	case row.Displaced():
		return fmt.Errorf("%w: the process is halted over its database, and delivers nothing: %s", ErrNotFailing, row.Failure.Error)
	case row.Failure == nil:
		return notFailing(row)
	case row.Failure.OfUs():
		return fmt.Errorf("%w: %s", ErrNotFailing, refusedBecause(row))
	case row.Failure.Position != at:
		return fmt.Errorf("%w: record %s at %q fails, and not the one at %q", cursor.ErrMoved, visible.Cut(row.Failure.RecordID), visible.Cut(string(row.Failure.Position)), visible.Cut(string(at)))
	}
	return nil
}

const unamendSQL = `/* cursor.unamend */
WITH changed AS (
	DELETE FROM {schema}.cursor_amended
	WHERE process_name = $1 AND position = $2
	RETURNING 1
)
SELECT CASE WHEN count(*) > 0 THEN 1 ELSE ('` + tables.Untaken + `rows: '` + tables.Raise

// Unamend takes back what Amend gave to the record at a position: it is delivered as its row is from then on. It
// returns ErrNotAmended if the record was not amended. If the record is failing, it becomes due at once. A new epoch
// begins. d.Expect is the position of the cursor or, if a record fails, of that record. d needs a reason.
func (o *Operator) Unamend(ctx context.Context, process string, at cursor.Position, d cursor.Decision) (Change, error) {
	all, err := o.Amendments(ctx, process, at, at)
	if err != nil {
		return Change{}, err
	}
	if len(all) == 0 {
		return Change{}, o.db.Explain("take back an amendment of", process, fmt.Errorf("%w: the one at %q", ErrNotAmended, visible.Cut(string(at))))
	}
	a := action{name: "unamend", needsReason: true, moves: true, apply: func(row cursor.Row) (cursor.Row, error) {
		row.Epoch++
		if f := row.Failure; f != nil && !row.Displaced() && !f.OfUs() && f.Position == at {
			row = cleared(row)
		}
		return row, nil
	}}
	return o.decide(ctx, process, d, a, func(conn *pgx.Conn, c Change, d cursor.Decision) error {
		return o.writeWith(ctx, conn, c, a, d, map[string]any{
			"record_id": all[0].RecordID, "record_position": at, "dedup_key": all[0].DedupKey,
		}, o.db.Statement(unamendSQL, process, string(at)))
	})
}

// MaxAmendments bounds how many Amendments returns.
const MaxAmendments = 1000

const amendmentsSQL = `/* cursor.amendments */
SELECT
	position,
	dedup_key,
	table_name,
	record_id,
	encode(payload, 'hex'),
	original,
	actor,
	db_user,
	reason,
	(extract(epoch FROM at) * 1000000)::bigint
FROM {schema}.cursor_amended
WHERE process_name = $1 AND position >= $2 AND position <= $3
ORDER BY position, dedup_key
LIMIT $4`

// Amendments returns the amended records of a process from one position up to another, both included, at most
// MaxAmendments of them.
func (o *Operator) Amendments(ctx context.Context, process string, from, upTo cursor.Position) ([]cursor.Amendment, error) {
	results, err := o.ask(ctx, o.db.Statement(amendmentsSQL, process, string(from), string(upTo), strconv.Itoa(MaxAmendments)))
	if err != nil {
		return nil, o.db.Explain("look for amended records of", process, err)
	}
	var all []cursor.Amendment
	for _, values := range results[0].Rows {
		p := tables.Parser{Values: values}
		payload, err := tables.Bytes(values[4])
		all = append(all, cursor.Amendment{
			Process: process, Position: cursor.Position(p.Text(0)), DedupKey: p.Text(1), Table: p.Text(2), RecordID: p.Text(3),
			Payload: payload, Original: p.Text(5), Actor: p.Text(6), User: p.Text(7), Reason: p.Text(8), At: p.Time(9),
		})
		if err := errors.Join(err, p.Err); err != nil {
			return nil, o.db.Explain("look for amended records of", process, err)
		}
	}
	return all, nil
}

const forgetAmendedSQL = `/* cursor.forget_amended */
DELETE FROM {schema}.cursor_amended
WHERE process_name = $1 AND position = $2`

// ForgetAmended removes the amendments of records whose rows are gone. No delivery needs them.
func (o *Operator) ForgetAmended(ctx context.Context, process string, gone ...cursor.Position) error {
	for _, at := range gone {
		if _, err := o.db.Once(ctx, o.db.Timeout, tables.Begin, o.db.Statement(forgetAmendedSQL, process, string(at))); err != nil {
			return o.db.Explain("forget an amendment of", process, err)
		}
	}
	return nil
}

// digest is how an amendment names the payload of the row.
func digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}
