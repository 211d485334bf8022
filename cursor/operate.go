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

// Errors of Pause, Resume, Retry, Skip, Seek and Discard, besides ErrUnknown and
// ErrHalted. After any of them but ErrUncertain the row is as it was.
var (
	// ErrMoved: the cursor, or the dead letter, does not stand where Decision.Expect
	// says.
	ErrMoved = errors.New("not at the expected position")
	// ErrNotFailing: there is no failing record to try again or to pass over.
	ErrNotFailing = errors.New("no record is failing")
	// ErrLocked: the row could not be locked within Decision.Timeout.
	ErrLocked = errors.New("the cursor's row is locked")
	// ErrNoEvent: the audit would not have kept what was decided.
	ErrNoEvent = errors.New("nothing was changed: the audit keeps no event of it, as a trigger of the table cursor_event may decide: drop the trigger, or have it return NEW")
	// ErrUncertain: the database did not answer the commit, or not in time. History, which
	// has an event of what was done, says whether it was.
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

// Decision is what an operator answers for: it goes into the audit with what was
// done. Each of the methods that takes one locks the row, as a worker does for
// its deliveries, so that it acts between two checkpoints and never during a
// delivery; a busy worker stands aside within some 100 ms, or when the call it is
// in ends. What is done and its event are one transaction.
//
// Whatever is decided of a paused process, it stays paused until Resume.
type Decision struct {
	// Actor is who decides. Required.
	Actor string
	// Reason is why. Required by Skip, Seek and Discard, which can lose records.
	Reason string
	// Expect is the position that the operator saw: that of the cursor or, for Skip and
	// Retry, of the failing record. If it is another one when the row is locked, nothing
	// is done (ErrMoved). nil: any. Of a dead letter it is the position of its record.
	Expect *Position
	// Timeout is how long to wait for the row (ErrLocked), so that a sink call in
	// flight may end. Default 30 s, at most 1 h. The row of a dead letter is
	// locked while it is replayed.
	Timeout time.Duration
	// Fenced says that the server is the only primary: a later one is fenced, or gone. A process that halted on what may be an old
	// primary (ClassOldPrimary) is decided on only then, else ErrOldPrimary: the later primary would go on below the numbers that the
	// decision begins.
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

// Change is what a decision makes of a cursor's row.
type Change struct {
	// Before is the row as it was found, After as it was left.
	Before, After Row
	// Changed is false if the process was in the wanted state already: then
	// nothing was written.
	Changed bool
	// Expect is what Decision.Expect has to be for this very change.
	Expect Position
	// Looks says that the source looks for rows that were stamped before the position, before it reads on: see
	// PromotedError.
	Looks bool
}

// Pause stops a process at its next checkpoint. When it returns, nothing is being
// delivered, and nothing will be until Resume. A process that is paused already
// is left as it is; one that is halted is refused (ErrHalted): it stands still,
// and its failing record needs a decision of its own.
func (s *Store) Pause(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "pause", apply: func(row Row) (Row, error) {
		if row.State == Halted {
			return row, haltedAt(row)
		}
		row.State = Paused
		return row, nil
	}})
}

// Resume sets a paused process running. A new epoch begins, so that workers look anew at a table
// that may have been changed meanwhile. One that runs already is left as it is;
// one that is halted is refused (ErrHalted): its record wants Retry, Skip or Seek. So is one whose server's clock
// was seen to be behind while it was paused (ClassClock).
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

// Retry has the failing record tried again at once, with its attempts and its
// back-off counted anew, and sets a halted process running. A new epoch begins.
// ErrNotFailing if no record is failing. A process that halted because its database was restored
// (ClassRestored) goes on from where it stands, as by Restored; one whose ids have started again (ClassReset), as by SeekAnew. One that halted because the clock
// was behind (ClassClock) looks for all that was stamped before its position, and halts again if
// there is any: see PromotedError.
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
			row.Epoch++ // or a worker between two transactions would go on counting
		}
		return set(row), err
	}})
}

// Skip passes over the failing record, that one alone, and sets a halted process
// running. The record is never delivered; it keeps its number in the sequence,
// and a new epoch begins. ErrNotFailing if no record is failing, also where the receiver refused us
// (ClassRefused): the record was not at fault, and to pass over it would lose it for nothing.
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

// SeekGap is by how much Seek moves the sequence on: more than any worker can have
// sent beyond its last checkpoint, so that no number ever stands for two records.
const SeekGap = 10_000

// Seek moves the cursor to a position, forward or back: what stands behind it is
// delivered next, again or for the first time. It sets a halted process running.
// The sequence goes on, with a gap of SeekGap, and a new epoch begins. After a halt over the server
// (ClassRestored, ClassClock) a new history begins, as by Restored, and after one over its ids (ClassReset) as by SeekAnew. After one over the clock, the source looks again
// for rows that were stamped before the position (see PromotedError), unless the seek answers the halt: it is to where the process halted; to Failure.Position or before it; or,
// where that is not "", to behind where it halted.
//
// to must be a position of the process's source, which alone can tell; "" stands
// before the first record. Records passed over are never delivered, records behind
// it come again with the dedup keys they had. Where records have no time of creation and their ids
// have started again, other rows had these keys: use SeekAnew there.
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
			row.Position = min(row.Position, to) // the records between the two may be others, too
			row, err = row.begun(time.Now())
			row.Position = to
		default:
			row = row.sought(to)
		}
		return set(row), err
	}}
}

// Restored says that the database was restored from a backup or a snapshot: what the process sent
// since is not known here. It goes on from where it stands, with numbers past all that may have
// been used (by a multiple of HistoryGap), and a new history begins. Its worker looks first, as after a
// promotion, for rows that were stamped before the position: see PromotedError. A process that halted over the server
// (ClassRestored, ClassClock, ClassReset) runs again; one that is paused or halted over something else stays so.
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

// refusedBecause is what the receiver said when it refused us.
func (r Row) refusedBecause() string {
	return fmt.Sprintf("the receiver refuses us, not record %s: %s", visible.Cut(r.Failure.RecordID), r.Failure.Error)
}

func notFailing(row Row) error {
	return fmt.Errorf("%w: the process is %s at %q", ErrNotFailing, row.State, visible.Cut(string(row.Position)))
}

// sought is the row at another position, under other numbers.
func (r Row) sought(to Position) Row {
	r.Position = to
	r.Sequence += SeekGap
	r.Epoch++
	return r
}

// haltedAs reports whether the process halted over its server, for that reason.
func (r Row) haltedAs(c Class) bool { return displaced(r) && r.Failure.Class == c }

// displaced reports whether the process halted over its server, and not over a record.
func displaced(row Row) bool {
	return row.Failure != nil && row.Failure.OfServer()
}

// set takes the failure off a row, and sets it running unless it is paused.
func set(row Row) Row {
	row.Failure = nil
	if row.State == Halted {
		row.State = Running
	}
	return row
}

// action is one of the things an operator can do.
type action struct {
	name        string
	needsReason bool
	moves       bool
	ofRecord    bool // about the failing record, so that one is what is expected
	// apply says what becomes of a row, or why it is refused.
	apply func(Row) (Row, error)
}

// expect is what an action is expected to find in a row.
func (a action) expect(row Row) Position {
	if a.ofRecord && row.Failure != nil && !displaced(row) {
		return row.Failure.Position
	}
	return row.Position
}

// unexpected is why the row is not the one that the operator saw. The cursor's position
// does not tell which record fails: that one may have been deleted since.
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

// plan holds a row against a decision.
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
	if row.unnoted && after.Epoch > row.Epoch { // the server that is lost may have given that epoch out, too
		after.Epoch = max(after.Epoch, row.Epoch.leapt(time.Now()))
	}
	change.After = after
	change.Looks = change.looksAgain(a) || change.looksFirst(a)
	change.Changed = a.moves || after.State != row.State || (after.Failure == nil) != (row.Failure == nil)
	return change, nil
}

// operate carries an action on the row out, or rehearses it.
func (s *Store) operate(ctx context.Context, process string, d Decision, a action) (Change, error) {
	return s.decide(ctx, process, d, a, func(conn *pgxpool.Conn, c Change, d Decision) error {
		if !c.Changed {
			return nil
		}
		return s.write(ctx, conn, c, a, d)
	})
}

// decide holds the row, locked, against an action and has write make the change
// durable. A rehearsal reads the row without a lock, and writes nothing.
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

// operateSQL locks the row by its primary key and waits for it, so that a worker
// sees somebody waiting and stands aside. The settings end with the transaction.
// The wait is bounded twice: lock_timeout starts again whenever a worker comes
// first, statement_timeout does not.
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

// ApplicationOperator is the application name of an operator's transaction, which
// writes nothing but the cursor and its audit.
const ApplicationOperator = "ordered-dispatcher operator "

// operateMargin is how much later than the server our own side gives up.
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

// gaveUp reports a wait that one of its time-outs ended.
func gaveUp(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "57014")
}
