package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// Lease is the right to deliver the records of one process and to advance its cursor, while it is held. It is
// over after Release, Fail, Halt, or any error of its methods. Only one goroutine at a time may call its
// methods; Context may be used by all.
type Lease struct {
	store     *Store
	terms     terms
	server    string
	place     string // see start
	histories histories

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when keep has returned

	mu   sync.Mutex // guards the connection and what follows
	conn *pgxpool.Conn
	tx   pgx.Tx // made when first needed
	row  Row
	at   version // of the row, at the time it was locked

	yielded  time.Time    // when it was last checked whether a session waits for the row
	planned  time.Time    // when the statements were last planned for the size of the table
	began    time.Time    // when the worker asked for the lock, with a monotonic reading
	answered atomic.Int64 // since began: when the last answered statement was sent
	handed   atomic.Int64 // since began: when Held last allowed a record to be sent
}

// newLease keeps the lease of a row; asked is when its lock was asked for.
func newLease(ctx context.Context, s *Store, conn *pgxpool.Conn, row lockedRow, t terms, asked time.Time) *Lease {
	l := &Lease{store: s, terms: t, server: row.server.run, place: row.server.place(), histories: row.histories, conn: conn, row: row.Row, at: row.at, began: asked, yielded: time.Now(), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go l.keep()
	return l
}

// Context ends when the lease does; if the lease was lost, ErrLeaseLost is among its causes. Sink calls run
// under it.
func (l *Lease) Context() context.Context { return l.ctx }

// Process returns the name of the process.
func (l *Lease) Process() string { return l.row.Process }

// Position returns how far the cursor has durably come.
func (l *Lease) Position() Position { return l.row.Position }

// Sequence returns how many records the process has durably delivered.
func (l *Lease) Sequence() int64 { return l.row.Sequence }

// Epoch returns the fencing token of this lease.
func (l *Lease) Epoch() Epoch { return l.row.Epoch }

// Origin returns the identity of the cursor: see Row.
func (l *Lease) Origin() string { return l.row.Origin }

// History returns the mark of the history that a position belongs to: see Histories.
func (l *Lease) History(at Position) string { return l.histories.at(at) }

// Server returns the run of the server that the lease is held on, as Seen.Server does.
func (l *Lease) Server() string { return l.server }

// Failure returns the record the process was stuck on when the lease was
// acquired or last advanced; nil if there is none.
func (l *Lease) Failure() *Failure { return l.row.Failure }

// advanceUpdate changes the row; the lock is held already. Its conditions are the last guard against a worker
// that has lost the lease without noticing.
const advanceUpdate = `
	UPDATE {schema}.cursor
	SET
		position = $2,
		sequence = sequence OPERATOR(pg_catalog.+) $3,
		horizon = pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()),
		failed_position = NULL,
		failed_record_id = NULL,
		failed_attempts = 0,
		first_failed_at = NULL,
		last_failed_at = NULL,
		next_attempt_at = NULL,
		failed_error = NULL,
		failed_class = NULL
	WHERE process_name OPERATOR(pg_catalog.=) $1
		AND epoch OPERATOR(pg_catalog.=) $4
		AND position OPERATOR(pg_catalog.<) $2`

// advanceTaken is the condition that a row meets after an advance.
const advanceTaken = `epoch OPERATOR(pg_catalog.=) $4
		AND position OPERATOR(pg_catalog.=) $2
		AND sequence OPERATOR(pg_catalog.=) $5`

// A transaction that only holds the advance may commit without it, and needs no more than the count of its
// rows, since every checkpoint pays for each check. Where there are effects or other rows beside it, a failed
// advance raises: see oneRow.
var (
	advanceSQL = `/* cursor.advance */` + advanceUpdate + atVersion + `
	RETURNING ` + took(advanceTaken, noteVersion)
	advanceWithSQL = `/* cursor.advance_with */
WITH changed AS (` + advanceUpdate + atVersion + `
	RETURNING ` + took(advanceTaken, noteVersion) + `
)` + oneRow
)

// Advance durably moves the cursor past n more records, to the position to of the last one, and goes on holding
// the lease: a checkpoint, in one network flush. With WithTx, the effects of the deliveries commit with it.
//
// nil means that the position is durable. The lease may still be over: the lock is released between the commit
// and the next transaction. If another worker or an operator takes it then, Context ends. After an error the
// outcome is unknown and the lease is over; the row holds the truth.
//
// Canceling ctx drops the connection and with it the lock.
func (l *Lease) Advance(ctx context.Context, to Position, n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.explain("advance", l.row.Process, err)
	}
	next := l.row
	next.Position, next.Sequence, next.Failure = to, l.row.Sequence+n, nil
	update := l.advanced(to, n)
	if l.terms.application == ApplicationLease {
		update.sql = l.store.advanceSQL
	}
	ok, err := l.checkpoint(ctx, next, update)
	if !ok {
		return l.notAdvanced(to, err)
	}
	return err
}

// checkpoint commits updates, the last of which changes the row. It goes on holding the lease, unless a session
// came in between or waits for the row. It reports whether the row was changed. If so, the only error is
// ErrUndone, and the lease is over.
func (l *Lease) checkpoint(ctx context.Context, next Row, updates ...statement) (bool, error) {
	relock := l.store.relock(next, l.terms)
	if time.Since(l.yielded) >= yieldInterval {
		return l.checkpointAside(ctx, next, updates, relock)
	}
	results, err := l.flush(ctx, append(updates, commit, begin, relock)...)
	if !committed(results, len(updates)) || !changedOne(results[len(updates)-1]) {
		return false, err
	}
	return true, l.relocked(ctx, next, results[len(updates)+1:], err)
}

// advanced is the statement of an advance that has effects or other rows beside it.
func (l *Lease) advanced(to Position, n int64) statement {
	return statement{sql: l.store.advanceWithSQL, args: []string{
		l.row.Process, string(to), strconv.FormatInt(n, 10), l.epoch(), strconv.FormatInt(l.row.Sequence+n, 10), string(l.at)}}
}

// yieldInterval is how often a lease checks whether a session waits for its row.
const yieldInterval = 100 * time.Millisecond

// waitersSQL finds sessions that wait for the row's lock, by waiting for this transaction.
const waitersSQL = `/* cursor.waiters */
SELECT EXISTS (
	SELECT 1 FROM pg_catalog.pg_locks
	WHERE locktype OPERATOR(pg_catalog.=) 'transactionid'
		AND NOT granted
		AND transactionid OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()::pg_catalog.xid
)`

// checkpointAside is checkpoint with room for an operator. Otherwise a busy worker would always be first at the
// lock it has just released, and a session that waits for the row would wait for ever. So the lease ends if one
// waits.
func (l *Lease) checkpointAside(ctx context.Context, next Row, updates []statement, relock statement) (bool, error) {
	l.yielded = time.Now()
	results, err := l.flush(ctx, append(append([]statement{{sql: waitersSQL}}, updates...), commit)...)
	if err != nil || !committed(results, 1+len(updates)) || !changedOne(results[len(updates)]) {
		return false, err
	}
	if string(results[0].Rows[0][0]) == "t" {
		_ = l.lose(ErrStoodAside)
		return true, nil
	}
	results, err = l.flush(ctx, begin, relock)
	return true, l.relocked(ctx, next, results, err)
}

// notAdvanced ends the lease after an update or a commit failed.
func (l *Lease) notAdvanced(to Position, err error) error {
	if err == nil || notAsLocked(err) {
		err = fmt.Errorf("%w: %w: epoch %d can no longer advance to position %s: %w", ErrLeaseLost, ErrUnmoved, l.row.Epoch, to, or(err, errNotAsLocked))
	}
	return l.store.explain("advance", l.row.Process, l.lose(err))
}

// relocked handles the result of the lock statement of a checkpoint. The lease ends unless that found our own
// row as we left it: an operator sought or paused, or another worker came in between. The only error it returns
// is ErrUndone.
func (l *Lease) relocked(ctx context.Context, next Row, results []*pgconn.Result, err error) error {
	l.row = next
	if err == nil {
		err = l.resumed(ctx, results[1])
	}
	if err != nil {
		err = l.lose(fmt.Errorf("after a checkpoint: %w", err))
	}
	if errors.Is(err, ErrUndone) {
		l.store.takers.Delete(next.Process)
		return l.store.explain("advance", next.Process, err)
	}
	return nil
}

// resumed goes on with the version of the row that a relock found. If it found none, resumed looks for the row
// by its name: another session may have changed it, or only moved it.
func (l *Lease) resumed(ctx context.Context, relocked *pgconn.Result) error {
	if len(relocked.Rows) == 0 {
		results, err := l.flush(ctx, l.store.lock(l.row.Process, l.terms))
		if err != nil {
			return err
		}
		return l.asLeft(results[0])
	}
	return l.moved(ctx, version(relocked.Rows[0][relockedVersion]))
}

var errChanged = errors.New("the row changed between two transactions")

// asLeft compares the row that a lock statement returned with how we left it.
func (l *Lease) asLeft(result *pgconn.Result) error {
	row, err := locked(result)
	if errors.Is(err, ErrUnknown) {
		return err
	}
	if err == nil {
		err = workable(row.Row)
	}
	if err == nil && row.Epoch == l.row.Epoch && row.Position < l.row.Position {
		return ErrUndone
	}
	if err == nil && (row.Epoch != l.row.Epoch || row.Position != l.row.Position || row.Sequence != l.row.Sequence) {
		err = errChanged
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStoodAside, err)
	}
	l.at = row.at
	return nil
}

// Rollback undoes what was done through WithTx since the last Advance and goes on holding the lease. An error
// means that the lease is over.
func (l *Lease) Rollback(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.explain("roll back", l.row.Process, err)
	}
	results, err := l.flush(ctx, rollback, begin, l.store.lock(l.row.Process, l.terms))
	if err == nil {
		err = l.asLeft(results[2])
	}
	if err != nil {
		return l.store.explain("roll back", l.row.Process, l.lose(err))
	}
	return nil
}

// WithTx calls f with the transaction that the next Advance commits. The lease must come from AcquireTx. tx
// refuses to commit and to roll back; tx.Begin makes a savepoint. Only f may use the connection while it runs.
// If the server falls silent meanwhile, Context ends.
func (l *Lease) WithTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.explain("deliver under", l.row.Process, err)
	}
	if l.terms.application != ApplicationTx {
		return l.store.explain("deliver under", l.row.Process, errors.New("the lease was not acquired with AcquireTx"))
	}
	listening, cancel := context.WithCancel(l.ctx)
	defer cancel()
	defer answer.Listen(listening, l.conn.Conn(), func(err error) { _ = l.lose(err) }).Stop()
	if l.tx == nil {
		tx, err := leaseTx(ctx, l.conn.Conn())
		if err != nil {
			return l.store.explain("deliver under", l.row.Process, l.lose(err))
		}
		l.tx = tx
	}
	err := f(l.tx)
	if l.conn.Conn().IsClosed() {
		return l.lose(err)
	}
	return err
}

// Release gives the lease back and undoes everything since the last Advance. It may be called at any time, and
// again.
func (l *Lease) Release() {
	l.end(errors.New("lease released"))
}

// end stops the pings, then gives the connection back.
func (l *Lease) end(cause error) {
	l.cancel(cause)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		giveBack(l.conn)
		l.conn = nil
	}
}

func (l *Lease) epoch() string { return strconv.FormatInt(int64(l.row.Epoch), 10) }

// flush sends statements; the caller holds mu.
func (l *Lease) flush(ctx context.Context, statements ...statement) ([]*pgconn.Result, error) {
	sent := time.Since(l.began)
	results, err := flush(ctx, l.conn.Conn(), statements...)
	if err == nil {
		l.answered.Store(int64(sent))
	}
	return results, err
}
