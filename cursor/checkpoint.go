package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

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
// advance raises: see tables.OneRow.
var (
	advanceSQL = `/* cursor.advance */` + advanceUpdate + atVersion + `
	RETURNING ` + tables.Took(advanceTaken, noteVersion)
	advanceWithSQL = `/* cursor.advance_with */
WITH changed AS (` + advanceUpdate + atVersion + `
	RETURNING ` + tables.Took(advanceTaken, noteVersion) + `
)` + tables.OneRow
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
		return l.store.db.Explain("advance", l.row.Process, err)
	}
	next := l.row
	next.Position, next.Sequence, next.Failure = to, l.row.Sequence+n, nil
	update := l.advanced(to, n)
	if l.terms.application == ApplicationLease {
		update.SQL = l.store.advanceSQL
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
//
// Each return below is one of these five cases. The position is never past what was acknowledged, so none loses a record.
// Only the cases "unknown" and "undone" can send records a second time: those since the last checkpoint.
//
//   - Advanced: the change is committed, and the lock is held again. TestAdvance_IsDurableAndKeepsTheLease.
//   - Advanced and over: the change is committed, and the lock is not held again. The caller reports the records
//     as delivered. The next worker reads the row, so it sends none of them again.
//     TestAdvance_StandsAsideForASessionThatWaits, TestAdvance_NoticesWhatAnOperatorDidBetweenTwoTransactions,
//     TestAdvance_GoesOnWithNothingButTheRowItLeft.
//   - Unmoved: no row was changed, so nothing that was beside the change is committed: see advanceSQL. The row is
//     another worker's, or an operator's. TestAdvance_RefusesSupersededEpoch, TestAdvance_RefusesToGoBackOrNowhere,
//     TestOneRow_WhatChangesNoRowCommitsNothing.
//   - Unknown: the COMMIT was not answered, or with ROLLBACK. The lease is over, and the row holds the truth. If the
//     change is not in it, the records come again: at least once, and never none.
//     TestAdvance_WhoseCommitIsUnknownIsTruthfulAboutIt, TestCommitted_TakesNothingButACommit.
//   - Undone: the change was committed, and a trigger took it back. The records come again, but not before the row
//     takes an advance. TestAdvance_ThatATriggerUndoesIsAnError, TestAcquire_NoLeaseOfARowThatTakesNoAdvance.
func (l *Lease) checkpoint(ctx context.Context, next Row, updates ...tables.Statement) (bool, error) {
	relock := l.store.relock(next, l.terms)
	if time.Since(l.waitersChecked) >= yieldInterval {
		return l.checkpointAside(ctx, next, updates, relock)
	}
	results, err := l.flush(ctx, append(updates, tables.Commit, tables.Begin, relock)...)
	if !changed(results, len(updates)) {
		return false, err // unmoved or unknown: the caller decides by err
	}
	// After the COMMIT has succeeded, err is only about the lock.
	return true, l.relocked(ctx, next, last(results), err)
}

// changed reports whether the COMMIT at an index of results succeeded, and the update before it changed one row.
func changed(results []*pgconn.Result, commit int) bool {
	return tables.Committed(results, commit) && tables.ChangedOne(results[commit-1])
}

// last returns the result of the last statement that was answered.
func last(results []*pgconn.Result) *pgconn.Result { return results[len(results)-1] }

// advanced is the statement of an advance that has effects or other rows beside it.
func (l *Lease) advanced(to Position, n int64) tables.Statement {
	return tables.Statement{SQL: l.store.advanceWithSQL, Args: []string{
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
func (l *Lease) checkpointAside(ctx context.Context, next Row, updates []tables.Statement, relock tables.Statement) (bool, error) {
	l.waitersChecked = time.Now()
	results, err := l.flush(ctx, append(append([]tables.Statement{{SQL: waitersSQL}}, updates...), tables.Commit)...)
	if err != nil || !changed(results, 1+len(updates)) {
		return false, err // unmoved or unknown, as in checkpoint
	}
	waiters := tables.Parser{Values: results[0].Rows[0]}
	if waiters.True(0) {
		_ = l.lose(ErrStoodAside) // advanced and over: the session that waits has the lock by now
		return true, nil
	}
	// Nothing was asked of the row since the COMMIT. If the lock cannot be had, the lease is over, as after the one
	// flush of checkpoint.
	results, err = l.flush(ctx, tables.Begin, relock)
	if err != nil {
		return true, l.relocked(ctx, next, nil, err)
	}
	return true, l.relocked(ctx, next, last(results), nil)
}

// notAdvanced ends the lease after an update or a commit failed. Without an error of the connection the case is
// "unmoved", and with one "unknown", unless the server itself reports that no row was changed.
func (l *Lease) notAdvanced(to Position, err error) error {
	if err == nil || tables.NotAsLocked(err) {
		err = fmt.Errorf("%w: %w: epoch %d can no longer advance to position %s: %w", ErrLeaseLost, ErrUnmoved, l.row.Epoch, to, tables.Or(err, tables.ErrNotAsLocked))
	}
	return l.store.db.Explain("advance", l.row.Process, l.lose(err))
}

// relocked handles the lock statement of a checkpoint whose change is committed: err is its error, and without one
// lock is its result. The lease ends unless it found our own row as we left it: an operator sought or paused, or
// another worker came in between. The only error it returns is ErrUndone.
func (l *Lease) relocked(ctx context.Context, next Row, lock *pgconn.Result, err error) error {
	l.row = next // committed, so true even if the lease ends here
	if err == nil {
		err = l.resumed(ctx, lock)
	}
	if err != nil {
		err = l.lose(fmt.Errorf("after a checkpoint: %w", err))
	}
	if errors.Is(err, ErrUndone) {
		l.store.takers.Delete(next.Process) // no lease before the row takes an advance: see rehearse
		return l.store.db.Explain("advance", next.Process, err)
	}
	return nil // advanced: if the lease is over, its context has the cause
}

// resumed goes on with the version of the row that a relock found. If it found none, resumed looks for the row
// by its name: another session may have changed it, or only moved it.
func (l *Lease) resumed(ctx context.Context, relocked *pgconn.Result) error {
	if len(relocked.Rows) == 0 {
		results, err := l.flush(ctx, l.store.lock(l.row.Process, l.terms))
		if err != nil {
			return err
		}
		return l.asLeft(last(results))
	}
	return l.moved(ctx, version(relocked.Rows[0][relockedVersion]))
}

var errChanged = errors.New("the row changed between two transactions")

// asLeft compares the row that a lock statement returned with how we left it. Only if they are the same may the
// lease go on: what this worker has read ahead follows that row and no other.
func (l *Lease) asLeft(result *pgconn.Result) error {
	row, err := locked(result)
	if err == nil {
		err = row.Workable()
	}
	switch {
	case errors.Is(err, ErrUnknown):
		return err // the row is gone: an operator forgot or renamed it
	case err != nil: // held by another session, paused or halted
		return fmt.Errorf("%w: %w", ErrStoodAside, err)
	case row.Epoch == l.row.Epoch && row.Position < l.row.Position:
		// Who moves a row back begins an epoch. In ours, only a trigger can have done it.
		return ErrUndone
	case row.Epoch != l.row.Epoch, row.Position != l.row.Position, row.Sequence != l.row.Sequence:
		return fmt.Errorf("%w: %w", ErrStoodAside, errChanged)
	}
	l.at = row.at
	return nil
}
