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

// LettersOf are the dead letters of one process that an erasure concerns: those of some records, and those of a key.
type LettersOf struct {
	Process string
	// Table and Records are those of the records.
	Table   string
	Records []string
	// Key is the key of the records. With "", no letter is chosen by its key.
	Key string
}

// lettersOfSQL is their condition.
const lettersOfSQL = `process_name = $1
	AND (table_name = $2 AND record_id = ANY ($3::text[]) OR $4 <> '' AND key = $4)`

const openLettersOfSQL = `/* cursor.open_letters */
SELECT count(*)
FROM {schema}.dead_letter
WHERE ` + lettersOfSQL + `
	AND resolution IS NULL`

// eraseLettersSQL empties resolved dead letters. Their place in the audit of what was not delivered in its turn stays.
const eraseLettersSQL = `/* cursor.erase_letters */
UPDATE {schema}.dead_letter
SET key = '', headers = '{}', payload = NULL, error = '` + erasedError + `'
WHERE ` + lettersOfSQL + `
	AND resolution IS NOT NULL`

// eraseAmendedSQL forgets what operators gave to the records.
const eraseAmendedSQL = `/* cursor.erase_amended */
DELETE FROM {schema}.cursor_amended
WHERE process_name = $1 AND table_name = $2 AND record_id = ANY ($3::text[])`

const erasedError = "erased"

// Erased reports that an erasure has emptied a dead letter.
func Erased(l cursor.DeadLetter) bool {
	return l.Resolution != "" && l.Failure.Error == erasedError && l.Payload == nil
}

// EraseLetters empties resolved dead letters, and returns how many. It also forgets the amendments of the records. It returns ErrOpenLetter if one is open. It is for
// a transaction of Prune.
func (o *Operator) EraseLetters(ctx context.Context, tx pgx.Tx, all []LettersOf) (erased int64, err error) {
	var open int64
	for _, l := range all {
		var more int64
		if err := tx.QueryRow(ctx, o.db.SQL(openLettersOfSQL), pgx.QueryExecModeExec, l.Process, l.Table, l.Records, l.Key).Scan(&more); err != nil {
			return 0, fmt.Errorf("look for dead letters of the key: %w", err)
		}
		open += more
	}
	if open > 0 {
		return 0, fmt.Errorf("%w: %d of that key. Nothing was erased: replay or discard them, then erase again", ErrOpenLetter, open)
	}
	for _, l := range all {
		tag, err := tx.Exec(ctx, o.db.SQL(eraseLettersSQL), pgx.QueryExecModeExec, l.Process, l.Table, l.Records, l.Key)
		if err != nil {
			return 0, fmt.Errorf("empty dead letters of the key: %w", err)
		}
		erased += tag.RowsAffected()
		if _, err := tx.Exec(ctx, o.db.SQL(eraseAmendedSQL), pgx.QueryExecModeExec, l.Process, l.Table, l.Records); err != nil {
			return 0, fmt.Errorf("forget amended payloads of the key: %w", err)
		}
	}
	return erased, nil
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
