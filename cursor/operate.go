package cursor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Errors of Pause, Resume, Retry, Skip, Seek and Discard, besides ErrUnknown and ErrHalted. After any of them
// except ErrUncertain the row is as it was.
var (
	// ErrMoved reports that the cursor, or the dead letter, is not at the position of Decision.Expect.
	ErrMoved = errors.New("not at the expected position")
	// ErrNotFailing reports that there is no failing record to try again or to pass over.
	ErrNotFailing = errors.New("no record is failing")
	// ErrLocked reports that the row could not be locked within Decision.Timeout.
	ErrLocked = errors.New("the cursor's row is locked")
	// ErrNoEvent reports that the audit would not have kept the decision.
	ErrNoEvent = errors.New("nothing was changed: the audit keeps no event of it, as a trigger of the table cursor_event may decide: drop the trigger, or have it return NEW")
	// ErrUncertain reports that the database did not answer the commit, or not in time. History shows whether
	// it was done: then it has an event of it.
	ErrUncertain = errors.New("it is not known whether this was done")
)

// uncertain adds ErrUncertain to the error of a flush that ends with a COMMIT, unless the
// server itself refused one of its statements.
func uncertain(err error) error {
	var pgErr *pgconn.PgError
	if err == nil || errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR" {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}

// Decision is what an operator orders and answers for. It goes into the audit with what was done. Each method
// that takes a Decision locks the row, as a worker does for its deliveries. So it acts between two checkpoints
// and never during a delivery. A busy worker stands aside within some 100 ms, or when the call it is in ends.
// The change and its event are one transaction.
//
// A paused process stays paused until Resume, even if an operator decides something else about it.
type Decision struct {
	// Actor is the person or program that decides. Required.
	Actor string
	// Reason is why. Skip, Seek and Discard, which can lose records, require it.
	Reason string
	// Expect is the position that the operator saw: the cursor's or, for Skip and Retry, the failing record's.
	// If the locked row has another one, nothing is done (ErrMoved). nil: any. For a dead letter it is the
	// position of its record.
	Expect *Position
	// Timeout is how long to wait for the row before ErrLocked, so that a sink call in flight may end. Default
	// 30 s, at most 1 h. The row of a dead letter is locked while it is replayed.
	Timeout time.Duration
	// Fenced asserts that the server is the only primary: a later one is fenced, or gone. A decision about a
	// process that halted on a possible old primary (ClassOldPrimary) needs it; otherwise the error is
	// ErrOldPrimary. A later primary would go on below the numbers that the decision begins.
	Fenced bool
	// DryRun reads the row without a lock, checks the rest, and changes nothing.
	DryRun bool
}

const (
	defaultDecisionTimeout = 30 * time.Second
	maxDecisionTimeout     = time.Hour
)

func (d Decision) withDefaults() Decision {
	d.Actor, d.Reason = strings.TrimSpace(clean(d.Actor)), strings.TrimSpace(clean(d.Reason))
	if d.Timeout == 0 {
		d.Timeout = defaultDecisionTimeout
	}
	return d
}

func (d Decision) validate(a action) error {
	var faults []error
	if d.Actor == "" {
		faults = append(faults, errors.New("the decision has no actor"))
	}
	if d.Reason == "" && a.needsReason && !d.DryRun {
		faults = append(faults, errors.New("the decision has no reason, which the audit needs"))
	}
	if d.Timeout < time.Millisecond || d.Timeout > maxDecisionTimeout {
		faults = append(faults, fmt.Errorf("timeout %v is not within 1ms and %v", d.Timeout, maxDecisionTimeout))
	}
	return errors.Join(faults...)
}

// Change is what a decision changes in a cursor's row.
type Change struct {
	// Before is the row as it was found, After as it was left.
	Before, After Row
	// Changed is false if the process was in the wanted state already: then nothing was written.
	Changed bool
	// Expect is the value of Decision.Expect that allows only this change.
	Expect Position
	// Looks reports that the source looks for rows that were stamped before the position, before it reads on:
	// see PromotedError.
	Looks bool
}

// Pause stops a process at its next checkpoint. When it returns, no delivery is under way, and none starts
// until Resume. Pause leaves a paused process as it is. It refuses one that is halted (ErrHalted): that process
// delivers nothing anyway, and its failing record needs a decision of its own.
func (s *Store) Pause(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "pause", apply: func(row Row) (Row, error) {
		if row.State == Halted {
			return row, haltedAt(row)
		}
		row.State = Paused
		return row, nil
	}})
}

// Resume sets a paused process running. A new epoch begins, so that workers look anew at a table that may have
// been changed meanwhile. Resume leaves a running process as it is. It refuses one that is halted (ErrHalted):
// its record needs Retry, Skip or Seek. It also refuses one whose server's clock was seen to be behind while it
// was paused (ClassClock).
func (s *Store) Resume(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "resume", apply: func(row Row) (Row, error) {
		if row.State == Halted || displaced(row) {
			return row, haltedAt(row)
		}
		if row.State == Paused {
			row.Epoch++
		}
		row.State = Running
		return row, nil
	}})
}

// Retry makes the failing record due at once, counts its attempts and its back-off anew, and sets a halted
// process running. A new epoch begins. It returns ErrNotFailing if no record is failing. A process that halted
// because its database was restored (ClassRestored) goes on from its position, as after Restored. One whose ids
// have started again (ClassReset) goes on as after SeekAnew. One that halted because the clock was behind
// (ClassClock) looks for all rows that were stamped before its position, and halts again if there are any: see
// PromotedError.
func (s *Store) Retry(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "retry", ofRecord: true, apply: func(row Row) (Row, error) {
		if row.Failure == nil && row.State != Halted {
			return row, notFailing(row)
		}
		var err error
		switch {
		case displaced(row) && row.Failure.Restored():
			row, err = row.begun(time.Now())
		case row.haltedAs(ClassReset):
			row, err = row.recounted(row.Position)
		default:
			row.Epoch++ // without it, a worker between two transactions would go on counting
		}
		return set(row), err
	}})
}

// Skip passes over the failing record, only that one, and sets a halted process running. The record is never
// delivered; it keeps its number in the sequence, and a new epoch begins. Skip returns ErrNotFailing if no
// record is failing. It does so, too, if the receiver refused us (ClassRefused): the record was not at fault,
// and passing over it would lose it for nothing.
func (s *Store) Skip(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "skip", needsReason: true, moves: true, ofRecord: true, apply: func(row Row) (Row, error) {
		if displaced(row) {
			return row, fmt.Errorf("%w: the process is halted over its database, and delivers nothing: %s", ErrNotFailing, row.Failure.Error)
		}
		if row.Failure == nil {
			return row, notFailing(row)
		}
		if row.Failure.OfUs() {
			return row, fmt.Errorf("%w: %s", ErrNotFailing, row.refusedBecause())
		}
		if row.Failure.Position <= row.Position {
			return row, fmt.Errorf("%w: the one that the row names is at %s, which the cursor has passed", ErrNotFailing, visible.Cut(string(row.Failure.Position)))
		}
		row.Position = row.Failure.Position
		row.Sequence++
		row.Epoch++
		return set(row), nil
	}})
}

// SeekGap is by how much Seek moves the sequence on. It is more than any worker can have sent beyond its last
// checkpoint, so no number ever belongs to two records.
const SeekGap = 10_000

// Seek moves the cursor to a position, forward or back. The records after it are delivered next, again or for
// the first time. It sets a halted process running. The sequence goes on, with a gap of SeekGap, and a new
// epoch begins. After a halt over the server (ClassRestored, ClassClock) a new history begins, as after
// Restored, and after a halt over the ids (ClassReset) as after SeekAnew. After a halt over the clock, the
// source looks again for rows that were stamped before the position (see PromotedError), unless the seek
// answers the halt. Three seeks do: to where the process halted; to Failure.Position or before it; or, if
// Failure.Position is not "", to a position past where it halted.
//
// to must be a position of the process's source; only the source can check that. "" is before the first record.
// Records passed over are never delivered; records after to come again with the dedup keys they had. If records
// have no time of creation and their ids have started again, other rows had these keys: use SeekAnew there.
func (s *Store) Seek(ctx context.Context, process string, to Position, d Decision) (Change, error) {
	return s.operate(ctx, process, d, seekTo(to))
}

// seekTo is the action of Seek.
func seekTo(to Position) action {
	return action{name: "seek", needsReason: true, moves: true, apply: func(row Row) (Row, error) {
		var err error
		switch {
		case row.haltedAs(ClassReset) && !row.unsettled:
			row, err = row.recounted(to)
		case displaced(row) || row.unsettled:
			row.Position = min(row.Position, to) // the records between the two may differ, too
			row, err = row.begun(time.Now())
			row.Position = to
		default:
			row = row.sought(to)
		}
		return set(row), err
	}}
}

// Restored records that the database was restored from a backup or a snapshot: what the process sent since the
// backup is not known here. The process goes on from its position, with numbers past all that may have been
// used (by a multiple of HistoryGap), and a new history begins. As after a promotion, its worker first looks
// for rows that were stamped before the position: see PromotedError. A process that halted over the server
// (ClassRestored, ClassClock, ClassReset) runs again; one that is paused or halted over something else stays
// so.
func (s *Store) Restored(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "restored", needsReason: true, moves: true, apply: func(row Row) (Row, error) {
		next, err := row.begun(time.Now())
		if displaced(row) {
			next = set(next)
		}
		return next, err
	}})
}

func haltedAt(row Row) error {
	if row.Failure == nil {
		return ErrHalted
	}
	if row.Failure.OfServer() {
		return fmt.Errorf("%w over its database, and delivers nothing: %s", ErrHalted, row.Failure.Error)
	}
	if row.Failure.OfUs() {
		return fmt.Errorf("%w, and delivers nothing: %s", ErrHalted, row.refusedBecause())
	}
	return fmt.Errorf("%w at record %s, and delivers nothing: %s", ErrHalted, visible.Cut(row.Failure.RecordID), row.Failure.Error)
}

// refusedBecause is the receiver's reason for refusing us.
func (r Row) refusedBecause() string {
	return fmt.Sprintf("the receiver refuses us, not record %s: %s", visible.Cut(r.Failure.RecordID), r.Failure.Error)
}

func notFailing(row Row) error {
	return fmt.Errorf("%w: the process is %s at %q", ErrNotFailing, row.State, visible.Cut(string(row.Position)))
}

// sought is the row moved to another position, under other numbers.
func (r Row) sought(to Position) Row {
	r.Position = to
	r.Sequence += SeekGap
	r.Epoch++
	return r
}

// haltedAs reports whether the process halted over its server, with class c.
func (r Row) haltedAs(c Class) bool { return displaced(r) && r.Failure.Class == c }

// displaced reports whether the process halted over its server, and not over a record.
func displaced(row Row) bool {
	return row.Failure != nil && row.Failure.OfServer()
}

// set removes the failure from a row, and sets it running unless it is paused.
func set(row Row) Row {
	row.Failure = nil
	if row.State == Halted {
		row.State = Running
	}
	return row
}

// action is one of the operations of an operator.
type action struct {
	name        string
	needsReason bool
	moves       bool
	ofRecord    bool // about the failing record, so Expect is that record's position
	// apply returns the changed row, or why the action is refused.
	apply func(Row) (Row, error)
}

// expect is the position that Decision.Expect has to have for a row.
func (a action) expect(row Row) Position {
	if a.ofRecord && row.Failure != nil && !displaced(row) {
		return row.Failure.Position
	}
	return row.Position
}

// unexpected returns why the row is not the one that the operator saw, or nil. The cursor's position does not
// identify the failing record, which may have been deleted since.
func (a action) unexpected(row Row, d Decision) error {
	switch {
	case d.Expect == nil:
		return nil
	case a.ofRecord && row.Failure == nil:
		return fmt.Errorf("%w: the record at %q was expected to fail: %w", ErrMoved, *d.Expect, notFailing(row))
	case *d.Expect == a.expect(row):
		return nil
	case a.ofRecord && !displaced(row):
		return fmt.Errorf("%w: record %s at %q fails, and the one at %q was expected to", ErrMoved, visible.Cut(row.Failure.RecordID), visible.Cut(string(row.Failure.Position)), visible.Cut(string(*d.Expect)))
	default:
		return fmt.Errorf("%w: it stands at %q and was expected at %q", ErrMoved, visible.Cut(string(row.Position)), visible.Cut(string(*d.Expect)))
	}
}

// plan checks a decision against a row, and returns the change.
func (a action) plan(row Row, d Decision) (Change, error) {
	change := Change{Before: row, After: row, Expect: a.expect(row)}
	if err := a.unexpected(row, d); err != nil {
		return change, err
	}
	after, err := a.apply(row)
	if err != nil {
		return change, err
	}
	if row.haltedAs(ClassOldPrimary) && after.Failure == nil && !d.Fenced {
		return change, fmt.Errorf("%w: %s", ErrOldPrimary, row.Failure.Error)
	}
	if row.unnoted && after.Epoch > row.Epoch { // the lost server may have given out that epoch, too
		after.Epoch = max(after.Epoch, row.Epoch.leapt(time.Now()))
	}
	change.After = after
	change.Looks = change.looksAgain(a) || change.looksFirst(a)
	change.Changed = a.moves || after.State != row.State || (after.Failure == nil) != (row.Failure == nil)
	return change, nil
}

// operate carries out an action on the row, or rehearses it.
func (s *Store) operate(ctx context.Context, process string, d Decision, a action) (Change, error) {
	return s.decide(ctx, process, d, a, func(conn *pgxpool.Conn, c Change, d Decision) error {
		if !c.Changed {
			return nil
		}
		return s.write(ctx, conn, c, a, d)
	})
}

// decide locks the row, checks an action against it, and calls write to make the change durable. A rehearsal
// reads the row without a lock, and writes nothing.
func (s *Store) decide(ctx context.Context, process string, d Decision, a action, write func(*pgxpool.Conn, Change, Decision) error) (Change, error) {
	d = d.withDefaults()
	if err := d.validate(a); err != nil {
		return Change{}, s.explain(a.name, process, err)
	}
	if d.DryRun {
		row, err := s.Look(ctx, process)
		if err != nil {
			return Change{}, err
		}
		change, err := a.plan(row, d)
		return change, s.refusal(a, process, err)
	}
	var change Change
	err := s.onConnection(ctx, func(conn *pgxpool.Conn) error {
		row, err := s.lockWaiting(ctx, conn, process, d.Timeout)
		if ctx.Err() != nil {
			return fmt.Errorf("gave up waiting for the row, and changed nothing: %w", ctx.Err())
		}
		if err != nil {
			return err
		}
		if change, err = a.plan(row, d); err != nil {
			return err
		}
		return write(conn, change, d)
	})
	if errors.Is(err, ErrLocked) {
		err = s.nameLockers(ctx, process, err)
	}
	return change, s.refusal(a, process, err)
}

func (s *Store) refusal(a action, process string, err error) error {
	if err == nil {
		return nil
	}
	return s.explain(a.name, process, unaudited(err))
}

// operateSQL locks the row by its primary key and waits for it, so that a worker sees the waiting session and
// stands aside. The settings end with the transaction. Two settings bound the wait: lock_timeout starts again
// whenever a worker comes first, statement_timeout does not.
const (
	operateSettingsSQL = `/* cursor.operate_settings */
SELECT
	set_config('application_name', $1, true),
	set_config('lock_timeout', $2, true),
	set_config('statement_timeout', $2, true),
	set_config('idle_in_transaction_session_timeout', $3, true),
	CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END`

	operateSQL = `/* cursor.operate */
SELECT` + rowColumns + `,
	` + unnotedSQL + `
FROM {schema}.cursor
WHERE process_name = $1
FOR UPDATE`
)

// ApplicationOperator is the application name of an operator's transaction, which only writes the cursor and
// its audit.
const ApplicationOperator = "ordered-dispatcher operator "

// operateMargin is how much later than the server we give up ourselves.
const operateMargin = 5 * time.Second

// lockWaiting leaves conn in a transaction that holds the lock of a row.
func (s *Store) lockWaiting(ctx context.Context, conn *pgxpool.Conn, process string, timeout time.Duration) (Row, error) {
	results, err := flushWithin(ctx, timeout+operateMargin, conn.Conn(), begin, pin,
		s.operateSettings(process, timeout),
		statement{sql: s.sql(operateSQL), args: []string{process}})
	if gaveUp(err) {
		return Row{}, fmt.Errorf("%w, and was not free within %v", ErrLocked, timeout)
	}
	if err != nil {
		return Row{}, err
	}
	if len(results[3].Rows) == 0 {
		return Row{}, ErrUnknown
	}
	values := results[3].Rows[0]
	row, err := parseRow(values)
	row.unnoted = string(values[len(values)-1]) == "t"
	return row, err
}

func (s *Store) operateSettings(process string, timeout time.Duration) statement {
	return statement{sql: operateSettingsSQL, args: []string{ApplicationOperator + process, milliseconds(timeout), milliseconds(s.config.Timeout)}}
}

// gaveUp reports that one of its time-outs ended a wait.
func gaveUp(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "57014")
}
