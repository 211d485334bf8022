package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Acquire takes the lease of a process. If it cannot, it returns at once with the reason: ErrHeld, ErrUnknown,
// ErrPaused or ErrHalted. The lease lasts until Release, Fail, Halt or its loss, even if ctx ends before.
//
// If the holder went away in the middle of a command, Acquire ends its session and returns a *TornError, which
// wraps ErrHeld: the next Acquire finds the row free. If the holder turns out not to be a worker, the error is
// a *StrangerError, which wraps ErrHeld, too. If a standby was promoted since the last take-over, the error is
// a *PromotedError, until Promote.
func (s *Store) Acquire(ctx context.Context, process string) (*Lease, error) {
	return s.acquire(ctx, process, terms{application: ApplicationLease})
}

// AcquireTx is Acquire for a lease whose transaction also carries the effects of deliveries: see Lease.WithTx.
// The server ends each statement of a delivery after statementTimeout; 0 means never. It frees the lock of a
// silent worker 10 s later than that, and not before Config.Timeout.
func (s *Store) AcquireTx(ctx context.Context, process string, statementTimeout time.Duration) (*Lease, error) {
	return s.acquire(ctx, process, terms{application: ApplicationTx, statementTimeout: statementTimeout})
}

func (s *Store) acquire(ctx context.Context, process string, t terms) (*Lease, error) {
	conn, err := s.db.Connect(ctx)
	if err != nil {
		return nil, s.db.Explain("acquire a connection for", process, err)
	}
	asked := time.Now() // the server's answer may be old when it arrives
	row, err := s.lockRow(ctx, conn, process, t)
	if errors.Is(err, ErrHeld) {
		err = s.held(ctx, conn, process, t)
	}
	if err != nil {
		tables.GiveBack(conn)
		return nil, s.db.Explain("lock", process, err)
	}
	return newLease(ctx, s, conn, row, t, asked), nil
}

// awaitSQL waits for the lock of the row and releases it at once.
const (
	awaitSettingsSQL = `/* cursor.await_settings */ SELECT set_config('lock_timeout', $1, true)`
	awaitSQL         = `/* cursor.await */ SELECT 1 FROM {schema}.cursor WHERE process_name = $1 FOR UPDATE`
)

// Await waits until no worker holds the lease, or ctx ends. A busy worker stands aside for it: it finishes the
// sink call it is in, and needs a tenth of a second more. The first to ask after that gets the lease.
func (s *Store) Await(ctx context.Context, process string) error {
	timeout := s.db.Timeout
	for {
		_, err := s.db.Once(ctx, timeout+tables.Margin, tables.Begin,
			tables.Statement{SQL: awaitSettingsSQL, Args: []string{tables.Milliseconds(timeout)}}, s.db.Statement(awaitSQL, process))
		switch {
		case tables.GaveUp(err) && ctx.Err() == nil: // the server answers, so waiting on is worthwhile
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("%w, and was not free in time: %w", ErrLocked, err)
			return s.db.Explain("wait for", process, s.nameLockers(context.WithoutCancel(ctx), process, err))
		case err != nil:
			return s.db.Explain("wait for", process, err)
		default:
			return nil
		}
	}
}

// lockRow leaves conn in a transaction that holds the lock of a running process, in an epoch of this worker.
func (s *Store) lockRow(ctx context.Context, conn *pgxpool.Conn, process string, t terms) (lockedRow, error) {
	if err := s.ready(ctx, conn, s.lockSQL, s.relockSQL, waitersSQL, s.advanceSQL, s.advanceWithSQL); err != nil {
		return lockedRow{}, err
	}
	row, err := s.lockNow(ctx, conn, process, t)
	if err == nil {
		err = row.Workable()
	}
	if err != nil {
		return lockedRow{}, err
	}
	switch {
	case row.elsewhere():
		return lockedRow{}, s.stop(ctx, conn, row, ClassRestored, row.Position, row.restoredElsewhere())
	case row.promoted():
		return lockedRow{}, row.promotion()
	case row.Holder != s.config.Worker || !row.known():
		return s.takeOver(ctx, conn, row, t)
	}
	if _, ok := s.takers.Load(process); !ok {
		return s.rehearse(ctx, conn, row.Row, t)
	}
	return row, nil
}

// lockNow leaves conn in a transaction that holds the lock of a process, in any state.
func (s *Store) lockNow(ctx context.Context, conn *pgxpool.Conn, process string, t terms) (lockedRow, error) {
	results, err := tables.FlushWithin(ctx, s.db.Timeout, conn.Conn(), tables.Begin, s.lock(process, t))
	if err != nil {
		return lockedRow{}, err
	}
	return locked(last(results))
}

// Workable returns why no worker may deliver in the row's state, ErrPaused or ErrHalted; nil if one may.
func (r Row) Workable() error {
	switch r.State {
	case Paused:
		return ErrPaused
	case Halted:
		return ErrHalted
	default:
		return nil
	}
}

var takeOverSQL = `/* cursor.take_over */
WITH changed AS (
	UPDATE {schema}.cursor
	SET epoch = epoch + 1, holder = $2, system_identifier = $4, timeline = $5, database_oid = $6
	WHERE process_name = $1 AND epoch = $3
	RETURNING ` + tables.Took(`epoch = $3 + 1 AND holder = $2`, `''`) + `
)` + tables.OneRow

// takenSQL reads the row back once all triggers have run. An AFTER trigger may undo the UPDATE, and RETURNING
// is evaluated before it runs.
var takenSQL = `/* cursor.taken */
SELECT ` + tables.Took(`epoch OPERATOR(pg_catalog.=) $2
		AND position OPERATOR(pg_catalog.=) $3
		AND sequence OPERATOR(pg_catalog.=) $4`, `''`) + `
FROM {schema}.cursor
WHERE process_name OPERATOR(pg_catalog.=) $1`

// rehearseSQL is an advance of a row whose newest version is not known.
var rehearseSQL = `/* cursor.rehearse */
WITH changed AS (` + advanceUpdate + `
	RETURNING ` + tables.Took(advanceTaken, `''`) + `
)` + tables.OneRow

// rehearsal is an advance by one record that is rolled back. It shows whether the row takes an advance before
// anything is sent. A worker forgets an advance that it owes when another worker takes over. So without the
// rehearsal, two workers that take over from each other in turn would send the same record again and again, while
// something keeps the advance from the row. The advance goes to a position that no source makes. It cannot run
// under the lease, because a rolled-back change hides who has the row's lock.
func (s *Store) rehearsal(row Row) []tables.Statement {
	epoch, to, sequence := strconv.FormatInt(int64(row.Epoch), 10), string(row.Position)+"~", strconv.FormatInt(row.Sequence+1, 10)
	return []tables.Statement{
		{SQL: "SAVEPOINT rehearsal"},
		s.db.Statement(rehearseSQL, row.Process, to, "1", epoch, sequence),
		{SQL: "SET CONSTRAINTS ALL IMMEDIATE"},
		s.db.Statement(takenSQL, row.Process, epoch, to, sequence),
		{SQL: "ROLLBACK TO rehearsal"},
	}
}

// errRehearsal reports that the row takes no advance.
var errRehearsal = errors.New("the row refuses an advance: before it sent anything, the worker tried one to a made-up position and rolled it back")

// kept adds to the error of a rehearsal that failed on conn the names of what may keep the row from an advance.
func (s *Store) kept(ctx context.Context, conn *pgxpool.Conn, err error) error {
	results, lookErr := tables.Flush(ctx, conn.Conn(), tables.Rollback, s.db.Statement(keepersSQL))
	if lookErr != nil || len(last(results).Rows) == 0 {
		return fmt.Errorf("%w: %w", errRehearsal, err)
	}
	return fmt.Errorf("%w; at the table cursor, by others: %s: %w", errRehearsal, strings.Join(texts(last(results)), ", "), err)
}

// rehearse is for a worker that goes on in its epoch: it restarted under its name, or one of its advances was
// undone. It leaves conn as it was, unless another session takes the lock in between.
func (s *Store) rehearse(ctx context.Context, conn *pgxpool.Conn, row Row, t terms) (lockedRow, error) {
	rehearsal := s.rehearsal(row)
	results, err := tables.Flush(ctx, conn.Conn(), append(rehearsal, tables.Rollback, tables.Begin, s.lock(row.Process, t))...)
	if err != nil && len(results) < len(rehearsal) {
		return lockedRow{}, s.kept(ctx, conn, err)
	}
	if err != nil {
		return lockedRow{}, err
	}
	return s.taken(last(results))
}

// taken returns the row after it has passed a rehearsal.
func (s *Store) taken(result *pgconn.Result) (lockedRow, error) {
	row, err := locked(result)
	if err != nil {
		return lockedRow{}, err
	}
	s.takers.Store(row.Process, true)
	if row.Holder != s.config.Worker {
		return lockedRow{}, ErrHeld
	}
	return row, row.Workable()
}

// takeOver starts an epoch and commits it before the first delivery. An uncommitted epoch would die with its
// worker, and the next worker would use it a second time. The commit releases the lock for a moment, and
// another worker may take it then.
func (s *Store) takeOver(ctx context.Context, conn *pgxpool.Conn, row lockedRow, t terms) (lockedRow, error) {
	before := []tables.Statement{tables.Pin, s.db.Statement(takeOverSQL,
		row.Process, s.config.Worker, strconv.FormatInt(int64(row.Epoch), 10),
		row.server.system, row.server.timeline, row.server.database)}
	next := row.Row
	next.Epoch++
	rehearsal := s.rehearsal(next)
	results, err := tables.Flush(ctx, conn.Conn(), slices.Concat(before, rehearsal, []tables.Statement{tables.Commit, tables.Begin, s.lock(row.Process, t)})...)
	if done := len(results) - len(before); err != nil && done < len(rehearsal) && (done >= 0 || tables.NotTaken(err)) {
		return lockedRow{}, s.kept(ctx, conn, err)
	}
	if err != nil {
		return lockedRow{}, err
	}
	if epoch := len(results) - 3; !tables.Committed(results, epoch) { // before BEGIN and the lock
		return lockedRow{}, tables.ErrNotAsLocked
	}
	return s.taken(last(results))
}
