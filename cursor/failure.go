package cursor

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// failSQL writes down the record that failed. Its first failure stands from an
// earlier lease, or lies $6 microseconds back.
const failSQL = `/* cursor.fail */
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
	failed_permanent = $9,
	state = $10
WHERE process_name = $1 AND epoch = $2`

const eventSQL = `/* cursor.event */
INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position)
VALUES ($1, $2, $3, $4, $5, $6)`

// Fail writes down that the record behind the cursor failed and when it is
// tried again, f.Wait from now, by whichever worker comes first; then it gives
// the lease back. What was done since the last Advance must be undone already
// (see Rollback).
func (l *Lease) Fail(ctx context.Context, f Failure) error {
	return l.fail(ctx, "record the failure of", Running, f)
}

// Halt is Fail for a record that is not tried again until an operator decides.
// It leaves an audit row.
func (l *Lease) Halt(ctx context.Context, f Failure) error {
	event := statement{l.store.sql(eventSQL), []string{
		l.row.Process, l.store.config.Worker, "halt", clean(f.Error), string(l.row.Position), string(f.Position)}}
	return l.fail(ctx, "halt", Halted, f, event)
}

func (l *Lease) fail(ctx context.Context, verb string, state State, f Failure, more ...statement) error {
	defer l.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return explain(verb, l.row.Process, err)
	}
	age := f.Last.Sub(f.First)
	update := statement{l.store.sql(failSQL), []string{
		l.row.Process, l.epoch(),
		string(f.Position), f.RecordID, strconv.Itoa(f.Attempts),
		strconv.FormatInt(age.Microseconds(), 10), strconv.FormatInt(f.Wait.Microseconds(), 10),
		clean(f.Error), strconv.FormatBool(f.Permanent), string(state),
	}}
	results, err := l.flush(ctx, append(append([]statement{update}, more...), commit)...)
	if err == nil && results[0].CommandTag.RowsAffected() != 1 {
		err = errors.New("the row is not as it was locked")
	}
	if err != nil {
		return explain(verb, l.row.Process, l.lose(err))
	}
	return nil
}

// maxErrorBytes bounds what of a sink's error is stored.
const maxErrorBytes = 2000

// clean makes a text that PostgreSQL can store: no NUL, valid UTF-8, bounded.
func clean(text string) string {
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes] + "…"
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}
