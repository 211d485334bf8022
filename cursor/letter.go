package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const deadLetterColumns = `
	id,
	process_name,
	at,
	position,
	sequence,
	table_name,
	record_id,
	key,
	type,
	record_created_at,
	attempts,
	first_failed_at,
	error,
	class,
	coalesce(resolution, ''),
	resolved_at,
	coalesce(resolved_by, ''),
	coalesce(reason, '')`

// deadLettersSQL reads by the index on open dead letters, or by the primary key.
const deadLettersSQL = `/* cursor.dead_letters */
SELECT` + deadLetterColumns + `
FROM {schema}.dead_letter
WHERE ($1::text = '' OR process_name = $1) AND ($2::boolean OR resolution IS NULL)
ORDER BY id
LIMIT $3::int`

// DeadLetters lists dead letters in the order they were put aside, at most limit
// of them: of one process or, with "", of all; with all, also those that are
// resolved. They come without headers and payload: see DeadLetter.
func (s *Store) DeadLetters(ctx context.Context, process string, all bool, limit int) ([]DeadLetter, error) {
	var letters []DeadLetter
	err := s.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.sql(deadLettersSQL), pgx.QueryExecModeExec, process, all, limit)
		if err != nil {
			return err
		}
		letters, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DeadLetter, err error) {
			return d, row.Scan(d.columns()...)
		})
		return err
	})
	if err != nil {
		return nil, s.withCure("list dead letters", err)
	}
	return letters, nil
}

// reading runs f in a transaction of our search_path that only reads.
func (s *Store) reading(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return s.onConnection(ctx, func(conn *pgxpool.Conn) error {
		within, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()
		_, err := flush(within, conn.Conn(), beginRead, pin)
		if err == nil {
			err = f(within, conn.Conn())
		}
		return overdue(ctx, within, "answer from the database", commitTimeout, err)
	})
}

// columns are where deadLetterColumns go.
func (d *DeadLetter) columns() []any {
	return []any{
		&d.ID, &d.Process, &d.At, &d.Position, &d.Sequence, &d.Table, &d.RecordID, &d.Key, &d.Type, nullTime{&d.CreatedAt},
		&d.Failure.Attempts, &d.Failure.First, &d.Failure.Error, &d.Failure.Class,
		&d.Resolution, nullTime{&d.ResolvedAt}, &d.ResolvedBy, &d.Reason,
	}
}

const oneDeadLetterSQL = `/* cursor.one_dead_letter */
SELECT` + deadLetterColumns + `,
	headers,
	payload
FROM {schema}.dead_letter
WHERE id = $1::bigint`

// DeadLetter returns one dead letter, resolved or not, with headers and payload.
// It returns ErrNoDeadLetter if there is none.
func (s *Store) DeadLetter(ctx context.Context, id int64) (d DeadLetter, err error) {
	err = s.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		d, err = letter(ctx, conn, s.sql(oneDeadLetterSQL), id)
		return err
	})
	if err != nil {
		return DeadLetter{}, s.withCure(fmt.Sprintf("read dead letter %d", id), err)
	}
	return d, nil
}

// letter reads one dead letter with a statement.
func letter(ctx context.Context, conn *pgx.Conn, sql string, id int64) (DeadLetter, error) {
	var d DeadLetter
	var headers []byte
	err := conn.QueryRow(ctx, sql, pgx.QueryExecModeExec, id).Scan(append(d.columns(), &headers, &d.Payload)...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoDeadLetter
	}
	if err == nil {
		err = json.Unmarshal(headers, &d.Headers)
	}
	return d, err
}

// nullTime reads NULL as the zero time.
type nullTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (n nullTime) Scan(value any) error {
	*n.to, _ = value.(time.Time)
	return nil
}
