package cursor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Resolvable returns an open dead letter that d may decide about, without headers and payload. It returns
// ErrNoDeadLetter if there is none of that number, and ErrMoved if d.Expect is not its position. Another
// operator may resolve it at any time: Lease.Letter and the operator's Discard check again.
func (s *Store) Resolvable(ctx context.Context, id int64, d Decision, r Resolution) (DeadLetter, error) {
	check := d.Checked
	if r == Discarded {
		check = d.Reasoned
	}
	d, err := check()
	if err != nil {
		return DeadLetter{}, s.db.WithFix(resolving(id, r), err)
	}
	var found DeadLetter
	err = s.NameExcluder(ctx, s.db.Reading(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		found, err = letter(ctx, conn, s.db.SQL(tables.PlainLetterSQL), id)
		return err
	}), "dead_letter")
	if err != nil {
		return DeadLetter{}, s.db.WithFix(fmt.Sprintf("read dead letter %d", id), err)
	}
	if err := found.open(d); err != nil {
		return found, s.db.WithFix(resolving(id, r), err)
	}
	return found, nil
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
var lockLetterSQL = tables.LetterSQL + `
FOR UPDATE`

func (s *Store) replayed(id int64, d Decision) tables.Statement {
	return s.db.Resolve(id, string(Replayed), d.Actor, d.Reason)
}

var errResolvedMeanwhile = fmt.Errorf("%w: another operator resolved it in between", ErrNoDeadLetter)

// Letter returns an open dead letter of the process, locked until the lease's transaction ends, so it is still
// open when Replayed resolves it. It returns ErrNoDeadLetter and ErrMoved as Store.Resolvable does. An error of
// the database ends the lease.
func (l *Lease) Letter(ctx context.Context, id int64, d Decision) (DeadLetter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return DeadLetter{}, l.store.db.Explain("replay a record of", l.row.Process, err)
	}
	found, err := l.letter(ctx, id, d.withDefaults())
	if errors.Is(err, ErrNoAnswer) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = l.store.LetterLocked(context.WithoutCancel(ctx), fmt.Errorf("in time: %w", err))
	}
	if err != nil {
		return DeadLetter{}, l.store.db.Explain("replay a record of", l.row.Process, l.lose(tables.Unaudited(err)))
	}
	if found.Process != l.row.Process {
		err = fmt.Errorf("%w: it belongs to %q", ErrNoDeadLetter, found.Process)
	}
	if err := tables.Or(err, found.open(d)); err != nil {
		return found, l.store.db.WithFix(resolving(id, Replayed), err)
	}
	return found, nil
}

// letter locks a dead letter under our search_path, and then sets the sink's search_path again. It rehearses
// Replayed, so that nothing is sent if no event of it can be kept.
func (l *Lease) letter(ctx context.Context, id int64, d Decision) (found DeadLetter, err error) {
	timeout := l.store.db.Timeout
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() { err = answer.Overdue(ctx, within, answer.FromDatabase, timeout, err) }()
	own, err := l.flush(within, tables.Statement{SQL: searchPathSQL}, tables.Pin)
	if err != nil {
		return DeadLetter{}, err
	}
	if found, err = letter(within, l.conn.Conn(), l.store.db.SQL(lockLetterSQL), id); err != nil {
		return DeadLetter{}, err
	}
	rest := []tables.Statement{{SQL: setPathSQL, Args: []string{string(own[0].Rows[0][0])}}}
	if found.Resolution == "" {
		rest = append([]tables.Statement{{SQL: "SAVEPOINT rehearsal"}, l.store.replayed(id, d), {SQL: "ROLLBACK TO rehearsal"}, {SQL: "RELEASE rehearsal"}}, rest...)
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
		return l.store.db.Explain("replay a record of", l.row.Process, err)
	}
	results, err := l.flush(ctx, tables.Pin, l.store.replayed(id, d.withDefaults()), tables.Commit)
	switch {
	case tables.NotAsLocked(err) && !tables.NotTaken(err): // then the effects of this second replay did not commit
		err = errResolvedMeanwhile
	case err == nil && !tables.Committed(results, 2):
		err = tables.ErrNotAsLocked
	default:
		err = tables.Uncertain(err)
	}
	if err != nil {
		return l.store.db.Explain("replay a record of", l.row.Process, l.lose(tables.Unaudited(err)))
	}
	return nil
}
