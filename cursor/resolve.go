package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Resolvable returns an open dead letter that d may decide about, without headers and payload. It returns
// ErrNoDeadLetter if there is none of that number, and ErrMoved if d.Expect is not its position. Another
// operator may resolve it at any time: Discard and Lease.Letter check again.
func (s *Store) Resolvable(ctx context.Context, id int64, d Decision, r Resolution) (DeadLetter, error) {
	if err := d.withDefaults().validate(action{needsReason: r == Discarded}); err != nil {
		return DeadLetter{}, s.withFix(resolving(id, r), err)
	}
	letter, err := s.plainLetter(ctx, id)
	if err != nil {
		return letter, err
	}
	if err := letter.open(d); err != nil {
		return letter, s.withFix(resolving(id, r), err)
	}
	return letter, nil
}

func resolving(id int64, r Resolution) string { return fmt.Sprintf("have dead letter %d %s", id, r) }

// open returns why d may not decide about a dead letter, or nil.
func (l DeadLetter) open(d Decision) error {
	switch {
	case l.Resolution != "":
		return fmt.Errorf("%w: it was %s by %s at %s", ErrNoDeadLetter, l.Resolution, l.ResolvedBy, l.ResolvedAt.UTC().Format(time.RFC3339))
	case d.Expect != nil && *d.Expect != l.Position:
		return fmt.Errorf("%w: the dead letter is record %s at %q, and was expected at %q", ErrMoved, visible.Cut(l.RecordID), visible.Cut(string(l.Position)), visible.Cut(string(*d.Expect)))
	default:
		return nil
	}
}

// lockLetterSQL holds the row until the transaction ends: see Lease.Letter. A session that has it now only
// needs to commit.
const lockLetterSQL = oneDeadLetterSQL + `
FOR UPDATE`

// resolveSQL marks an open dead letter and writes the audit row with it. It locks the row of the dead letter
// meanwhile, so a second operator finds it resolved.
var resolveSQL = `/* cursor.resolve */
WITH resolved AS (
	UPDATE {schema}.dead_letter
	SET resolution = $2, resolved_at = clock_timestamp(), resolved_by = $3, reason = $4
	WHERE id = $1::bigint AND resolution IS NULL
	RETURNING ` + took(`resolution = $2`, `process_name`) + ` AS process_name, position, record_id
), changed AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, to_position, detail)
	SELECT process_name, $3, 'dead_letter_' || $2, $4, position, jsonb_build_object('dead_letter', $1::bigint, 'record_id', record_id)
	FROM resolved
	RETURNING 1
)` + unlessOne + `CASE WHEN EXISTS (SELECT 1 FROM resolved) THEN '` + noEvent + `' ELSE 'the row is not as it was locked' END || ', rows changed: '` + raise

func (s *Store) resolve(id int64, r Resolution, d Decision) statement {
	return statement{sql: s.sql(resolveSQL), args: []string{strconv.FormatInt(id, 10), string(r), d.Actor, d.Reason}}
}

// Discard marks an open dead letter as never to be delivered, and returns it as it was. It returns
// ErrNoDeadLetter if there is none of that number, and ErrMoved if d.Expect is not its position. It returns
// ErrLocked if the dead letter is being replayed, and the replay does not end within d.Timeout. d needs a
// reason.
func (s *Store) Discard(ctx context.Context, id int64, d Decision) (DeadLetter, error) {
	letter, err := s.Resolvable(ctx, id, d, Discarded)
	if err != nil || d.DryRun {
		return letter, err
	}
	d = d.withDefaults()
	err = s.onConnection(ctx, func(conn *pgxpool.Conn) error {
		_, err := flushWithin(ctx, d.Timeout+operateMargin, conn.Conn(), begin, pin,
			s.operateSettings(letter.Process, d.Timeout), s.resolve(id, Discarded, d), commit)
		return uncertain(err)
	})
	switch {
	case gaveUp(err):
		err = s.nameLetterLockers(ctx, fmt.Errorf("%w, and was not free within %v", errLetterLocked, d.Timeout))
	case notAsLocked(err) && !notTaken(err):
		err = errResolvedMeanwhile
	}
	if err != nil {
		return letter, s.withFix(fmt.Sprintf("discard dead letter %d", id), unaudited(err))
	}
	return letter, nil
}

// errLetterLocked is ErrLocked for the row of a dead letter.
var errLetterLocked = &lockedError{"the dead letter's row is locked"}

type lockedError struct{ text string }

func (e *lockedError) Error() string { return e.text }
func (e *lockedError) Unwrap() error { return ErrLocked }

var errResolvedMeanwhile = fmt.Errorf("%w: another operator resolved it in between", ErrNoDeadLetter)

// Letter returns an open dead letter of the process, locked until the lease's transaction ends, so it is still
// open when Replayed resolves it. It returns ErrNoDeadLetter and ErrMoved as Store.Resolvable does. An error of
// the database ends the lease.
func (l *Lease) Letter(ctx context.Context, id int64, d Decision) (DeadLetter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return DeadLetter{}, l.store.explain("replay a record of", l.row.Process, err)
	}
	found, err := l.letter(ctx, id, d.withDefaults())
	if errors.Is(err, ErrNoAnswer) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = l.store.nameLetterLockers(context.WithoutCancel(ctx), fmt.Errorf("%w, and was not free in time: %w", errLetterLocked, err))
	}
	if err != nil {
		return DeadLetter{}, l.store.explain("replay a record of", l.row.Process, l.lose(unaudited(err)))
	}
	if found.Process != l.row.Process {
		err = fmt.Errorf("%w: it belongs to %q", ErrNoDeadLetter, found.Process)
	}
	if err := or(err, found.open(d)); err != nil {
		return found, l.store.withFix(resolving(id, Replayed), err)
	}
	return found, nil
}

// letter locks a dead letter under our search_path, and then sets the sink's search_path again. It rehearses
// Replayed, so that nothing is sent if no event of it can be kept.
func (l *Lease) letter(ctx context.Context, id int64, d Decision) (found DeadLetter, err error) {
	timeout := l.store.config.answerTimeout()
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() { err = answer.Overdue(ctx, within, answer.FromDatabase, timeout, err) }()
	own, err := l.flush(within, statement{sql: searchPathSQL}, pin)
	if err != nil {
		return DeadLetter{}, err
	}
	if found, err = letter(within, l.conn.Conn(), l.store.sql(lockLetterSQL), id); err != nil {
		return DeadLetter{}, err
	}
	rest := []statement{{sql: setPathSQL, args: []string{string(own[0].Rows[0][0])}}}
	if found.Resolution == "" {
		rest = append([]statement{{sql: "SAVEPOINT rehearsal"}, l.store.resolve(id, Replayed, d), {sql: "ROLLBACK TO rehearsal"}, {sql: "RELEASE rehearsal"}}, rest...)
	}
	_, err = l.flush(within, rest...)
	return found, err
}

const (
	searchPathSQL = `SELECT pg_catalog.current_setting('search_path')`
	setPathSQL    = `SELECT pg_catalog.set_config('search_path', $1, true)`
)

// Replayed marks an open dead letter as delivered, commits with it what was done through WithTx, and gives the
// lease back. The cursor stays where it is.
func (l *Lease) Replayed(ctx context.Context, id int64, d Decision) error {
	defer l.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.explain("replay a record of", l.row.Process, err)
	}
	results, err := l.flush(ctx, pin, l.store.resolve(id, Replayed, d.withDefaults()), commit)
	switch {
	case notAsLocked(err) && !notTaken(err): // then the effects of this second replay did not commit
		err = errResolvedMeanwhile
	case err == nil && !committed(results, 2):
		err = errNotAsLocked
	default:
		err = uncertain(err)
	}
	if err != nil {
		return l.store.explain("replay a record of", l.row.Process, l.lose(unaudited(err)))
	}
	return nil
}
