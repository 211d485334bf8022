package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// RowToDeadLetter reads a row of the table dead_letter, as pgx.CollectRows takes it. It knows the columns by their
// names; those that a query does not have stay zero.
func RowToDeadLetter(row pgx.CollectableRow) (DeadLetter, error) {
	var d DeadLetter
	var headers []byte
	to := map[string]any{
		"id": &d.ID, "process_name": &d.Process, "at": nullTime{&d.At}, "position": &d.Position, "sequence": &d.Sequence,
		"table_name": &d.Table, "record_id": &d.RecordID, "key": &d.Key, "type": &d.Type, "record_created_at": nullTime{&d.CreatedAt},
		"attempts": &d.Failure.Attempts, "first_failed_at": nullTime{&d.Failure.First}, "error": &d.Failure.Error, "class": &d.Failure.Class,
		"resolution": nullText{(*string)(&d.Resolution)}, "resolved_at": nullTime{&d.ResolvedAt}, "resolved_by": nullText{&d.ResolvedBy}, "reason": nullText{&d.Reason},
		"headers": &headers, "payload": &d.Payload,
	}
	var columns []any
	for _, field := range row.FieldDescriptions() {
		columns = append(columns, to[field.Name])
	}
	if err := row.Scan(columns...); err != nil || headers == nil {
		return d, err
	}
	return d, json.Unmarshal(headers, &d.Headers)
}

// letter reads one dead letter with a statement.
func letter(ctx context.Context, conn *pgx.Conn, sql string, id int64) (DeadLetter, error) {
	rows, err := conn.Query(ctx, sql, tables.Binary, id)
	if err != nil {
		return DeadLetter{}, err
	}
	d, err := pgx.CollectExactlyOneRow(rows, RowToDeadLetter)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoDeadLetter
	}
	return d, err
}

// nullTime reads NULL as the zero time.
type nullTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (n nullTime) Scan(value any) error {
	t, _ := value.(time.Time)
	*n.to = t.UTC()
	return nil
}

// nullText reads NULL as "".
type nullText struct{ to *string }

// Scan implements sql.Scanner.
func (n nullText) Scan(value any) error {
	*n.to, _ = value.(string)
	return nil
}
