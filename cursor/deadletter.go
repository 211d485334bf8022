package cursor

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// DeadLetter is a record that its process put aside and went on.
type DeadLetter struct {
	ID      int64
	Process string
	// At is when it was put aside, in the database's time.
	At time.Time
	// Position and Sequence are those of its attempts; no other record of the
	// process has them.
	Position Position
	Sequence int64

	Table, RecordID, Key, Type string
	CreatedAt                  time.Time // of the record; zero if it is not known
	Headers                    map[string]string
	Payload                    []byte // as it was sent

	// Failure is why. Its Position, RecordID and Wait are not set.
	Failure Failure

	// Resolution is what became of it; "" while it is open.
	Resolution Resolution
	ResolvedAt time.Time
	ResolvedBy string
	Reason     string
}

// Resolution is what an operator did with a dead letter.
type Resolution string

// The resolutions.
const (
	Replayed  Resolution = "replayed"  // delivered after all, out of its turn
	Discarded Resolution = "discarded" // never to be delivered
)

// ErrNoDeadLetter: there is none of that number, or it is resolved already.
var ErrNoDeadLetter = errors.New("no such open dead letter")

const deadLetterSQL = `/* cursor.dead_letter */
INSERT INTO {schema}.dead_letter (
	process_name, position, sequence, table_name, record_id, key, type, record_created_at,
	headers, payload, attempts, first_failed_at, error, class
)
SELECT
	$1, $2, $3, $4, $5, $6, $7, to_timestamp($8::numeric / 1000000),
	$9::json, $10::bytea, $11, clock_timestamp() - $12::bigint * interval '1 microsecond', $13, $14`

// PutAside durably moves the cursor behind the record that failed and keeps that
// record as a dead letter, in one transaction with its audit row; then it goes on
// holding the lease. The dead letter takes the next sequence, under which the
// record may have been seen. What was done since the last Advance must be undone
// already (see Rollback). Its outcomes are those of Advance.
func (l *Lease) PutAside(ctx context.Context, d DeadLetter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.explain("put aside a record of", l.row.Process, err)
	}
	insert, err := l.deadLetter(d)
	if err != nil {
		return l.store.explain("put aside a record of", l.row.Process, err)
	}
	event := l.event("dead_letter", d.Position, d.RecordID, d.Failure)
	next := l.row
	next.Position, next.Sequence, next.Failure = d.Position, l.row.Sequence+1, nil
	if ok, err := l.checkpoint(ctx, next, insert, event, l.advanced(d.Position, 1)); !ok {
		return l.notAdvanced(d.Position, err)
	}
	return nil
}

func (l *Lease) deadLetter(d DeadLetter) (statement, error) {
	headers, err := json.Marshal(d.Headers)
	if d.Headers == nil {
		headers = []byte("{}")
	}
	created := null
	if !d.CreatedAt.IsZero() {
		created = strconv.FormatInt(d.CreatedAt.UnixMicro(), 10)
	}
	payload := null
	if d.Payload != nil {
		payload = `\x` + hex.EncodeToString(d.Payload)
	}
	f := d.Failure
	return statement{l.store.sql(deadLetterSQL), []string{
		l.row.Process, string(d.Position), strconv.FormatInt(l.row.Sequence+1, 10), d.Table, d.RecordID, d.Key, d.Type, created,
		string(headers), payload,
		strconv.Itoa(f.Attempts), strconv.FormatInt(f.Last.Sub(f.First).Microseconds(), 10), clean(f.Error), string(f.class()),
	}}, err
}

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
	rows, err := s.pool.Query(ctx, s.sql(deadLettersSQL), pgx.QueryExecModeExec, process, all, limit)
	if err != nil {
		return nil, s.withCure("list dead letters", err)
	}
	letters, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DeadLetter, err error) {
		return d, row.Scan(d.columns()...)
	})
	if err != nil {
		return nil, s.withCure("list dead letters", err)
	}
	return letters, nil
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
func (s *Store) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	var d DeadLetter
	var headers []byte
	err := s.pool.QueryRow(ctx, s.sql(oneDeadLetterSQL), pgx.QueryExecModeExec, id).Scan(append(d.columns(), &headers, &d.Payload)...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoDeadLetter
	}
	if err == nil {
		err = json.Unmarshal(headers, &d.Headers)
	}
	if err != nil {
		return DeadLetter{}, s.withCure(fmt.Sprintf("read dead letter %d", id), err)
	}
	return d, nil
}

// resolveSQL marks an open dead letter and writes the audit row with it. The row
// of the dead letter is locked meanwhile; whoever comes second finds it resolved.
const resolveSQL = `/* cursor.resolve */
WITH resolved AS (
	UPDATE {schema}.dead_letter
	SET resolution = $2, resolved_at = clock_timestamp(), resolved_by = $3, reason = $4
	WHERE id = $1::bigint AND resolution IS NULL
	RETURNING process_name, position, record_id
)
INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, to_position, detail)
SELECT process_name, $3, 'dead_letter_' || $2, $4, position, jsonb_build_object('dead_letter', $1::bigint, 'record_id', record_id)
FROM resolved`

// Discard marks an open dead letter as never to be delivered, and returns it as it
// was. It returns ErrNoDeadLetter if there is none of that number, and ErrMoved if
// d.Expect is not its position. d needs a reason.
func (s *Store) Discard(ctx context.Context, id int64, d Decision) (DeadLetter, error) {
	letter, err := s.Resolvable(ctx, id, d, Discarded)
	if err != nil || d.DryRun {
		return letter, err
	}
	d = d.withDefaults()
	tag, err := s.pool.Exec(ctx, s.sql(resolveSQL), pgx.QueryExecModeExec, id, string(Discarded), d.Actor, d.Reason)
	if err == nil && tag.RowsAffected() != 1 {
		err = errResolvedMeanwhile
	}
	if err != nil {
		return letter, s.withCure(fmt.Sprintf("discard dead letter %d", id), err)
	}
	return letter, nil
}

// Resolvable returns an open dead letter of which d may be decided. It returns
// ErrNoDeadLetter if there is none of that number, and ErrMoved if d.Expect is not
// its position.
func (s *Store) Resolvable(ctx context.Context, id int64, d Decision, r Resolution) (DeadLetter, error) {
	doing := fmt.Sprintf("have dead letter %d %s", id, r)
	if err := d.withDefaults().validate(action{needsReason: r == Discarded}); err != nil {
		return DeadLetter{}, s.withCure(doing, err)
	}
	letter, err := s.DeadLetter(ctx, id)
	switch {
	case err != nil:
		return letter, err
	case letter.Resolution != "":
		err = fmt.Errorf("%w: it was %s by %s at %s", ErrNoDeadLetter, letter.Resolution, letter.ResolvedBy, letter.ResolvedAt.UTC().Format(time.RFC3339))
	case d.Expect != nil && *d.Expect != letter.Position:
		err = fmt.Errorf("%w: the dead letter is record %s at %q, and was expected at %q", ErrMoved, letter.RecordID, letter.Position, *d.Expect)
	}
	if err != nil {
		err = s.withCure(doing, err)
	}
	return letter, err
}

var errResolvedMeanwhile = fmt.Errorf("%w: somebody else resolved it in between", ErrNoDeadLetter)

// Replayed marks an open dead letter as delivered, commits what was done through
// WithTx with it, and gives the lease back. The cursor stays where it is.
func (l *Lease) Replayed(ctx context.Context, id int64, d Decision) error {
	defer l.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.explain("replay a record of", l.row.Process, err)
	}
	d = d.withDefaults()
	results, err := l.flush(ctx, statement{l.store.sql(resolveSQL), []string{
		strconv.FormatInt(id, 10), string(Replayed), d.Actor, d.Reason}})
	if err == nil && results[0].CommandTag.RowsAffected() != 1 {
		err = errResolvedMeanwhile
	}
	if err == nil { // not before: the effects of a second replay must not commit
		_, err = l.flush(ctx, commit)
	}
	if err != nil {
		return l.store.explain("replay a record of", l.row.Process, l.lose(err))
	}
	return nil
}

// nullTime reads NULL as the zero time.
type nullTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (n nullTime) Scan(value any) error {
	*n.to, _ = value.(time.Time)
	return nil
}
