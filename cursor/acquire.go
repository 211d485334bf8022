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
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, s.explain("acquire a connection for", process, err)
	}
	asked := time.Now() // the server's answer may be old when it arrives
	row, err := s.lockRow(ctx, conn, process, t)
	if errors.Is(err, ErrHeld) {
		err = s.held(ctx, conn, process, t)
	}
	if err != nil {
		giveBack(conn)
		return nil, s.explain("lock", process, err)
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
	timeout := s.config.answerTimeout()
	for {
		_, err := s.once(ctx, timeout+operateMargin, begin,
			statement{sql: awaitSettingsSQL, args: []string{milliseconds(timeout)}}, statement{sql: s.sql(awaitSQL), args: []string{process}})
		switch {
		case gaveUp(err) && ctx.Err() == nil: // the server answers, so waiting on is worthwhile
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("%w, and was not free in time: %w", ErrLocked, err)
			return s.explain("wait for", process, s.nameLockers(context.WithoutCancel(ctx), process, err))
		case err != nil:
			return s.explain("wait for", process, err)
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
		err = workable(row.Row)
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
	results, err := flushWithin(ctx, s.config.answerTimeout(), conn.Conn(), begin, s.lock(process, t))
	if err != nil {
		return lockedRow{}, err
	}
	return locked(results[1])
}

func workable(row Row) error {
	switch row.State {
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
	RETURNING ` + took(`epoch = $3 + 1 AND holder = $2`, `''`) + `
)` + oneRow

// takenSQL reads the row back once all triggers have run. An AFTER trigger may undo the UPDATE, and RETURNING
// is evaluated before it runs.
var takenSQL = `/* cursor.taken */
SELECT ` + took(`epoch OPERATOR(pg_catalog.=) $2
		AND position OPERATOR(pg_catalog.=) $3
		AND sequence OPERATOR(pg_catalog.=) $4`, `''`) + `
FROM {schema}.cursor
WHERE process_name OPERATOR(pg_catalog.=) $1`

// rehearseSQL is an advance of a row whose newest version is not known.
var rehearseSQL = `/* cursor.rehearse */
WITH changed AS (` + advanceUpdate + `
	RETURNING ` + took(advanceTaken, `''`) + `
)` + oneRow

// rehearsal is an advance by one record that is rolled back. It shows whether the row takes an advance before
// anything is sent. The debts of other workers end with their epoch. So without it, two workers that took over
// from one another in turn would each send a record, while something keeps the advance from the row. No source
// has the position it uses. It cannot run under the lease, because a rolled-back change hides who has the row's
// lock.
func (s *Store) rehearsal(row Row) []statement {
	epoch, to, sequence := strconv.FormatInt(int64(row.Epoch), 10), string(row.Position)+"~", strconv.FormatInt(row.Sequence+1, 10)
	return []statement{
		{sql: "SAVEPOINT rehearsal"},
		{sql: s.sql(rehearseSQL), args: []string{row.Process, to, "1", epoch, sequence}},
		{sql: "SET CONSTRAINTS ALL IMMEDIATE"},
		{sql: s.sql(takenSQL), args: []string{row.Process, epoch, to, sequence}},
		{sql: "ROLLBACK TO rehearsal"},
	}
}

// errRehearsal reports that the row takes no advance.
var errRehearsal = errors.New("the row takes no advance, as was tried before anything is sent, with a made-up position, and rolled back")

// kept adds to the error of a rehearsal that failed on conn the names of what may keep the row from an advance.
func (s *Store) kept(ctx context.Context, conn *pgxpool.Conn, err error) error {
	results, lookErr := flush(ctx, conn.Conn(), rollback, statement{sql: s.sql(keepersSQL)})
	if lookErr != nil || len(results[1].Rows) == 0 {
		return fmt.Errorf("%w: %w", errRehearsal, err)
	}
	return fmt.Errorf("%w; at the table cursor, by others: %s: %w", errRehearsal, strings.Join(texts(results[1]), ", "), err)
}

// rehearse is for a worker that goes on in its epoch: it restarted under its name, or one of its advances was
// undone. It leaves conn as it was, unless another session takes the lock in between.
func (s *Store) rehearse(ctx context.Context, conn *pgxpool.Conn, row Row, t terms) (lockedRow, error) {
	rehearsal := s.rehearsal(row)
	results, err := flush(ctx, conn.Conn(), append(rehearsal, rollback, begin, s.lock(row.Process, t))...)
	if err != nil && len(results) < len(rehearsal) {
		return lockedRow{}, s.kept(ctx, conn, err)
	}
	if err != nil {
		return lockedRow{}, err
	}
	return s.taken(results[len(results)-1])
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
	return row, workable(row.Row)
}

// takeOver starts an epoch and commits it before the first delivery. An uncommitted epoch would die with its
// worker, and the next worker would use it a second time. The commit releases the lock for a moment, and
// another worker may take it then.
func (s *Store) takeOver(ctx context.Context, conn *pgxpool.Conn, row lockedRow, t terms) (lockedRow, error) {
	before := []statement{pin, {sql: s.sql(takeOverSQL), args: []string{
		row.Process, s.config.Worker, strconv.FormatInt(int64(row.Epoch), 10),
		row.server.system, row.server.timeline, row.server.database}}}
	next := row.Row
	next.Epoch++
	rehearsal := s.rehearsal(next)
	results, err := flush(ctx, conn.Conn(), slices.Concat(before, rehearsal, []statement{commit, begin, s.lock(row.Process, t)})...)
	if done := len(results) - len(before); err != nil && done < len(rehearsal) && (done >= 0 || notTaken(err)) {
		return lockedRow{}, s.kept(ctx, conn, err)
	}
	if err != nil {
		return lockedRow{}, err
	}
	results = results[len(results)-3:]
	if !committed(results, 0) {
		return lockedRow{}, errNotAsLocked
	}
	return s.taken(results[2])
}

const giveBackTimeout = 2 * time.Second

// giveBack ends the transaction that conn may be in and returns conn to its pool. If the server does not
// answer, the pool closes the connection instead.
func giveBack(conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		// Do not use the caller's context: a canceled one would close the connection, and the lock would stay
		// until the server notices.
		ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
		defer cancel()
		_, _ = flush(ctx, conn.Conn(), rollback)
	}
	conn.Release()
}
