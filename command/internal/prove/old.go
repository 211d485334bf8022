package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
)

// ErrOld means that the old way is not there as it was described.
var ErrOld = errors.New("the old way is not as described")

func unlike(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrOld, fmt.Errorf(format, args...))
}

// Flag is a loop that marks each row that it has sent: with a boolean, or with a column that is no longer NULL.
type Flag struct{ Column string }

// Name implements Old.
func (f Flag) Name() string { return "a loop that sets " + f.Column }

// Stop implements Old.
func (f Flag) Stop() string { return "the loop that sets " + f.Column }

const columnSQL = `/* adopt.column */
SELECT pg_catalog.format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL), attnotnull
FROM pg_catalog.pg_attribute
JOIN pg_catalog.pg_type t ON t.oid = atttypid
WHERE attrelid = pg_catalog.to_regclass($1)::oid AND attname = $2 AND attnum > 0 AND NOT attisdropped`

// column returns the type of a column, without its domain, and whether it is NOT NULL.
func (m *move) column(ctx context.Context, name string) (kind string, notNull bool, err error) {
	err = m.ask(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, columnSQL, m.name, name).Scan(&kind, &notNull)
	})
	return kind, notNull, err
}

func (f Flag) delivered(ctx context.Context, m *move) (known, error) {
	name, err := pgname.Parse(f.Column)
	if err != nil || len(name) != 1 {
		return known{}, unlike("--dispatched-at %s is not the name of a column", f.Column)
	}
	kind, notNull, err := m.column(ctx, name[0])
	column := pgx.Identifier(name).Sanitize()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return known{}, unlike("%s has no column %s", m.name, f.Column)
	case err != nil:
		return known{}, err
	case kind == "boolean":
		return known{condition: column}, nil
	case notNull:
		return known{}, unlike("%s of %s is of type %s and NOT NULL, so a row that was not sent has a value, too. "+
			"A mark is a boolean, or a column that is NULL until the row is sent", f.Column, m.name, kind)
	case strings.Contains(kind, "int") || kind == "numeric":
		return known{}, unlike("%s of %s is of type %s: it is not known whether 0 means sent. "+
			"A mark is a boolean, or a column that is NULL until the row is sent", f.Column, m.name, kind)
	default:
		return known{condition: column + " IS NOT NULL"}, nil
	}
}

// IDLoop is a loop that reads the rows with a higher id than the last one that it has sent.
type IDLoop struct{ Last string }

// Name implements Old.
func (l IDLoop) Name() string { return "a loop by id, after " + l.Last }

// Stop implements Old.
func (l IDLoop) Stop() string { return "the loop" }

func (l IDLoop) delivered(ctx context.Context, m *move) (known, error) {
	last, err := strconv.ParseInt(l.Last, 10, 64)
	if err != nil {
		return known{}, unlike("--after-id %s is no integer", l.Last)
	}
	id := m.config.Columns.ID
	if id == "" {
		id = "id"
	}
	name, err := pgname.Parse(id)
	if err != nil {
		return known{}, err
	}
	switch kind, _, err := m.column(ctx, name[0]); {
	case err != nil:
		return known{}, err
	case !slices.Contains([]string{"bigint", "integer", "smallint"}, kind):
		return known{}, unlike("--after-id is for ids that are integers, and %s of %s is of type %s", id, m.name, kind)
	}
	k := known{condition: fmt.Sprintf("%s <= %d", pgx.Identifier(name).Sanitize(), last), unwatched: true,
		notes: []string{"rows that the loop has lost before " + l.Last + " stay lost: the database does not show which ones. `prove` shows whether it loses rows"}}
	reached, err := m.filtered(fmt.Sprintf("%s >= %d", pgx.Identifier(name).Sanitize(), last))
	if err != nil {
		return known{}, err
	}
	span, err := reached.Look(ctx, "", 1)
	if err == nil && len(span.Records) == 0 {
		k.notes = append(k.notes, "no row has the id "+l.Last+" or a higher one: see whether it is the last id that the loop has sent")
	}
	return k, tooLong(err)
}

// Given is a position that a person names.
type Given struct{ Position cursor.Position }

// Name implements Old.
func (g Given) Name() string { return "a position that was given" }

// Stop implements Old.
func (g Given) Stop() string { return "the old way" }

func (g Given) delivered(context.Context, *move) (known, error) {
	return known{after: &g.Position, unwatched: true, unproven: "everything up to the position was delivered: only you know"}, nil
}

// Watermill is a consumer group of watermill-sql, with its default tables.
type Watermill struct {
	Group string
	// Offsets is the table of the offsets; "" for the one that belongs to the table of the messages.
	Offsets string
}

// Name implements Old.
func (w Watermill) Name() string {
	return fmt.Sprintf("the consumer group %q of watermill-sql", w.Group)
}

// Stop implements Old.
func (w Watermill) Stop() string {
	return fmt.Sprintf("every subscriber of the consumer group %q", w.Group)
}

const messagesPrefix, offsetsPrefix = "watermill_", "watermill_offsets_"

// offsets is the name of the table with the offsets, as SQL takes it.
func (w Watermill) offsets(messages string) (string, error) {
	text := w.Offsets
	if text == "" {
		text = messages
	}
	name, err := pgname.Parse(text)
	if err != nil {
		return "", unlike("--watermill-offsets %s: %w", text, err)
	}
	if w.Offsets == "" {
		last := &name[len(name)-1]
		topic, found := strings.CutPrefix(*last, messagesPrefix)
		if !found {
			return "", unlike("%s does not begin with %s: name the table of the offsets with --watermill-offsets", messages, messagesPrefix)
		}
		*last = offsetsPrefix + topic
	}
	return pgx.Identifier(name).Sanitize(), nil
}

// delivered follows watermill-sql's own query. It reads the messages by (transaction_id, "offset"), and only those of
// transactions before which none is open. So all up to its place were delivered.
func (w Watermill) delivered(ctx context.Context, m *move) (known, error) {
	offsets, err := w.offsets(m.name)
	if err != nil {
		return known{}, err
	}
	var acked int64
	var last string
	err = m.ask(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `/* adopt.watermill */ SELECT coalesce(offset_acked, 0), last_processed_transaction_id::text FROM `+offsets+` WHERE consumer_group = $1`, w.Group).
			Scan(&acked, &last)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return known{}, unlike("%s has no consumer group %q", offsets, w.Group)
	}
	if err != nil {
		return known{}, fmt.Errorf("read the offset of watermill-sql: %w", err)
	}
	if _, err := strconv.ParseUint(last, 10, 64); err != nil {
		return known{}, fmt.Errorf("read the offset of watermill-sql: %w", err)
	}
	return known{
		condition: fmt.Sprintf(`(transaction_id < '%[1]s'::xid8 OR transaction_id = '%[1]s'::xid8 AND "offset" <= %[2]d)`, last, acked),
		mark:      fmt.Sprint(last, " ", acked),
	}, nil
}

// ask runs f in a read-only transaction.
func (m *move) ask(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, m.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('statement_timeout', '30s', true), pg_catalog.set_config('lock_timeout', '5s', true)`); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}
