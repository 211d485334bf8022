package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// ErrOpenLetter reports a dead letter that still has to be delivered or discarded.
var ErrOpenLetter = errors.New("a dead letter is open")

const openLettersOfKeySQL = `/* cursor.open_letters */
SELECT count(*)
FROM {schema}.dead_letter
WHERE process_name = ANY ($1::text[]) AND key = $2 AND resolution IS NULL`

// eraseLettersSQL empties resolved dead letters. Their place in the audit of what was not delivered in its turn stays.
const eraseLettersSQL = `/* cursor.erase_letters */
UPDATE {schema}.dead_letter
SET key = '', headers = '{}', payload = NULL, error = 'erased'
WHERE process_name = ANY ($1::text[]) AND key = $2 AND resolution IS NOT NULL`

// EraseLetters empties the resolved dead letters of processes that have a key, and returns how many. It returns
// ErrOpenLetter if one is open. It is for a transaction of Prune.
func (o *Operator) EraseLetters(ctx context.Context, tx pgx.Tx, processes []string, key string) (int64, error) {
	var open int64
	if err := tx.QueryRow(ctx, o.db.SQL(openLettersOfKeySQL), pgx.QueryExecModeExec, processes, key).Scan(&open); err != nil {
		return 0, fmt.Errorf("look for dead letters of the key: %w", err)
	}
	if open > 0 {
		return 0, fmt.Errorf("%w: %d of that key. Nothing was erased: replay or discard them, then erase again", ErrOpenLetter, open)
	}
	tag, err := tx.Exec(ctx, o.db.SQL(eraseLettersSQL), pgx.QueryExecModeExec, processes, key)
	return tag.RowsAffected(), err
}

const noteErasedSQL = `/* cursor.note_erased */
INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, detail)
SELECT name, $2, 'erase', $3, $4::jsonb
FROM unnest($1::text[]) process (name)`

// NoteErased writes an event of an erasure into the history of each process. detail must not have the key, which may
// be a person's. It is for a transaction of Prune.
func (o *Operator) NoteErased(ctx context.Context, tx pgx.Tx, processes []string, d cursor.Decision, detail map[string]any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, o.db.SQL(noteErasedSQL), pgx.QueryExecModeExec, processes, d.Actor, d.Reason, string(text))
	if err == nil && tag.RowsAffected() != int64(len(processes)) {
		err = cursor.ErrNoEvent
	}
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}
