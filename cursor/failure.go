package cursor

import (
	"context"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// failSQL writes down the record that failed. Its first failure is kept from an earlier lease, or was $6
// microseconds ago.
var failSQL = `/* cursor.fail */
WITH changed AS (
	UPDATE {schema}.cursor
	SET
		failed_position = $3,
		failed_record_id = $4,
		failed_attempts = $5,
		first_failed_at = CASE
			WHEN failed_position = $3 THEN first_failed_at
			ELSE clock_timestamp() - $6::bigint * interval '1 microsecond'
		END,
		last_failed_at = clock_timestamp(),
		next_attempt_at = clock_timestamp() + $7::bigint * interval '1 microsecond',
		failed_error = $8,
		failed_class = $9,
		state = $10
	WHERE process_name = $1 AND epoch = $2
	RETURNING ` + tables.Took(`failed_position = $3 AND failed_attempts = $5 AND state = $10`, `''`) + `
)` + tables.OneRow

const eventSQL = `/* cursor.event */
INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
VALUES ($1, $2, $3, $4, $5, $6, jsonb_strip_nulls(jsonb_build_object('record_id', $7::text, 'attempts', $8::int, 'class', $9::text)))`

// Fail writes down that the record after the cursor failed, and that it is due again f.Wait from now. Any
// worker may then try it first. Then Fail gives the lease back. The caller must have undone already what was
// done since the last Advance (see Rollback).
func (l *Lease) Fail(ctx context.Context, f Failure) error {
	return l.fail(ctx, "record the failure of", Running, f)
}

// Halt is Fail for a record that no worker tries again until an operator decides. It leaves an audit row.
func (l *Lease) Halt(ctx context.Context, f Failure) error {
	return l.fail(ctx, "halt", Halted, f, l.event("halt", f.Position, f.RecordID, f))
}

// Note is Fail for a worker that soon tries again itself: it goes on holding the lease. Its outcomes are those
// of Advance.
func (l *Lease) Note(ctx context.Context, f Failure) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.db.Explain("record the failure of", l.row.Process, err)
	}
	next := l.row
	next.Failure = &f
	ok, err := l.checkpoint(ctx, next, tables.Pin, l.failed(f, Running))
	if !ok {
		return l.store.db.Explain("record the failure of", l.row.Process, l.lose(tables.Or(err, tables.ErrNotAsLocked)))
	}
	return err
}

// event is an audit row about the record after the cursor.
func (l *Lease) event(action string, to Position, record string, f Failure) tables.Statement {
	return l.store.db.Statement(eventSQL,
		l.row.Process, l.store.config.Worker, action, clean(f.Error), string(l.row.Position), string(to),
		clean(record), strconv.Itoa(f.Attempts), string(f.class()))
}

func (l *Lease) fail(ctx context.Context, verb string, state State, f Failure, more ...tables.Statement) error {
	defer l.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.db.Explain(verb, l.row.Process, err)
	}
	updates := append([]tables.Statement{tables.Pin, l.failed(f, state)}, more...)
	results, err := l.flush(ctx, append(updates, tables.Commit)...)
	if err == nil && !tables.Committed(results, len(updates)) {
		err = tables.ErrNotAsLocked
	}
	if err != nil {
		return l.store.db.Explain(verb, l.row.Process, l.lose(err))
	}
	return nil
}

// failed is the statement that writes a failure down.
func (l *Lease) failed(f Failure, state State) tables.Statement {
	return l.store.db.Statement(failSQL,
		l.row.Process, l.epoch(),
		string(f.Position), storable(f.RecordID), strconv.Itoa(f.Attempts),
		strconv.FormatInt(f.Last.Sub(f.First).Microseconds(), 10), strconv.FormatInt(f.Wait.Microseconds(), 10),
		clean(f.Error), string(f.class()), string(state))
}

// maxErrorBytes bounds how much of a sink's error is stored.
const maxErrorBytes = 2000

// clean makes a text storable, and bounds it.
func clean(text string) string {
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes] + "…"
	}
	return storable(text)
}

// storable returns a text that PostgreSQL can store: without NUL, in valid UTF-8. A worker would meet a failure
// that it could not store again and again.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}
