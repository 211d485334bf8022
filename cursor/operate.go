package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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

// Resume sets a paused process running. One that runs already is left as it is;
// one that is halted is refused (ErrHalted): its record wants Retry, Skip or Seek.
func (s *Store) Resume(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "resume", apply: func(row Row) (Row, error) {
		if row.State == Halted {
			return row, haltedAt(row)
		}
		row.State = Running
		return row, nil
	}})
}

// Retry has the failing record tried again at once, with its attempts and its
// back-off counted anew, and sets a halted process running. A new epoch begins.
// ErrNotFailing if no record is failing. A process that halted because its database was restored
// (ClassRestored) goes on from where it stands, as by Restored. One that halted because the clock
// was behind (ClassClock) looks for all that was stamped before its position, and halts again if
// there is any: see PromotedError.
func (s *Store) Retry(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "retry", ofRecord: true, apply: func(row Row) (Row, error) {
		if row.Failure == nil && row.State != Halted {
			return row, notFailing(row)
		}
		if displaced(row) && row.Failure.Class == ClassRestored {
			row, err := row.begun(time.Now())
			return set(row), err
		}
		row.Epoch++ // or a worker between two transactions would go on counting
		return set(row), nil
	}})
}

// Skip passes over the failing record, that one alone, and sets a halted process
// running. The record is never delivered; it keeps its number in the sequence,
// and a new epoch begins. ErrNotFailing if no record is failing.
func (s *Store) Skip(ctx context.Context, process string, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "skip", needsReason: true, moves: true, ofRecord: true, apply: func(row Row) (Row, error) {
		if row.Failure == nil || displaced(row) {
			return row, notFailing(row)
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
// (ClassRestored, ClassClock) a new history begins, as by Restored.
//
// to must be a position of the process's source, which alone can tell; "" stands
// before the first record. Records passed over are never delivered, records behind
// it come again with the dedup keys they had.
func (s *Store) Seek(ctx context.Context, process string, to Position, d Decision) (Change, error) {
	return s.operate(ctx, process, d, action{name: "seek", needsReason: true, moves: true, apply: func(row Row) (Row, error) {
		if displaced(row) || row.unsettled {
			was := row.Position
			row.Position = min(was, to) // the records between the two may be others, too
			row, err := row.begun(time.Now())
			row.Position = to
			return set(row), err
		}
		row.Position = to
		row.Sequence += SeekGap
		row.Epoch++
		return set(row), nil
	}})
}

// Restored says that the database was restored from a backup or a snapshot: what the process sent
// since is not known here. It goes on from where it stands, with numbers past all that may have
// been used (by a multiple of HistoryGap), and a new history begins. Its worker looks first, as after a
// promotion, for rows that were stamped before the position: see PromotedError. A process that halted over the server
// (ClassRestored, ClassClock) runs again; one that is paused or halted over something else stays so.
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
	return fmt.Errorf("%w at record %s, and delivers nothing: %s", ErrHalted, visible.Cut(row.Failure.RecordID), row.Failure.Error)
}

func notFailing(row Row) error {
	return fmt.Errorf("%w: the process is %s at %q", ErrNotFailing, row.State, visible.Cut(string(row.Position)))
}

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
	if a.ofRecord && row.Failure != nil {
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
	case a.ofRecord:
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
	change.After = after
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
SELECT` + rowColumns + `
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
	return parseRow(results[3].Rows[0])
}

func (s *Store) operateSettings(process string, timeout time.Duration) statement {
	return statement{sql: operateSettingsSQL, args: []string{ApplicationOperator + process, milliseconds(timeout), milliseconds(s.config.Timeout)}}
}

// gaveUp reports a wait that one of its time-outs ended.
func gaveUp(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "57014")
}

// decideSQL writes what was decided; the lock is held already. A failure is only
// ever taken away ($6 = false). The horizon stays while a promotion is not noted: what it is for is
// still to be looked for. Where a history begins ($7), the position belongs to
// the server on which it was decided. No history is settled before the source has looked: after a halt over
// the clock ($10), or in a database that was restored ($11). The horizon says which rows are new to what was
// delivered: it was restored, too, unless the tables were loaded from a dump or copied. Then it is that of the decision,
// and if a look was owed before, nothing can say any more what it would have found (timeline 0). What an operator
// passes over by a seek after a restore is what there is by then ($12).
var decideSQL = `/* cursor.decide */
WITH changed AS (
	UPDATE {schema}.cursor
	SET
		position = $2,
		sequence = $3,
		epoch = $4,
		state = $5,
		failed_position = CASE WHEN $6::boolean THEN failed_position END,
		failed_record_id = CASE WHEN $6 THEN failed_record_id END,
		failed_attempts = CASE WHEN $6 THEN failed_attempts ELSE 0 END,
		first_failed_at = CASE WHEN $6 THEN first_failed_at END,
		last_failed_at = CASE WHEN $6 THEN last_failed_at END,
		next_attempt_at = CASE WHEN $6 THEN next_attempt_at END,
		failed_error = CASE WHEN $6 THEN failed_error END,
		failed_class = CASE WHEN $6 THEN failed_class END,
		system_identifier = CASE WHEN $7::boolean THEN ` + systemSQL + ` ELSE system_identifier END,
		timeline = CASE
			WHEN ($10::boolean OR $11::boolean AND timeline = ` + restoredTimeline + `) AND NOT ` + horizonHoldsSQL + ` THEN 0
			WHEN $10 THEN ` + unsettledSQL + `
			WHEN $11 THEN ` + restoredTimeline + `
			WHEN $7 THEN ` + timelineSQL + `
			ELSE timeline END,
		database_oid = CASE WHEN $7 THEN ` + databaseSQL + ` ELSE database_oid END,
		histories = $9::jsonb,
		horizon = CASE
			WHEN $10 OR $11 THEN CASE WHEN ` + horizonHoldsSQL + ` THEN horizon ELSE pg_snapshot_xmax(pg_current_snapshot()) END
			WHEN $7 OR $12::boolean OR position <> $2 AND timeline = ` + timelineSQL + ` THEN pg_snapshot_xmax(pg_current_snapshot())
			ELSE horizon END
	WHERE process_name = $1 AND epoch = $8
	RETURNING ` + took(`position = $2 AND sequence = $3 AND epoch = $4 AND state = $5 AND histories = $9::jsonb AND ($6 OR failed_attempts = 0)`, `''`) + `
)` + oneRow

// horizonHoldsSQL reports that the horizon of a row is of the transactions of this database. It is not if the
// row comes from another one, or if the table is younger: it was loaded from a dump. Of all that a catalog says of a
// table, nothing but its making writes the rows of its system columns (ctid is -1).
const horizonHoldsSQL = `coalesce(system_identifier = ` + systemSQL + ` AND database_oid = ` + databaseSQL + ` AND horizon <= pg_snapshot_xmax(pg_current_snapshot()) AND horizon::text::bigint > (
			SELECT now.xid - mod(now.xid - made.xmin::text::bigint, 4294967296)
			FROM pg_attribute made, (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid) now
			WHERE made.attrelid = cursor.tableoid AND made.attnum = -1
		), false)`

// A trigger of others may drop what a worker notes, and never what an operator decides.
const decisionEventSQL = `/* cursor.decision_event */
WITH changed AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
	VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb)
	RETURNING 1
)` + unlessOne + `'` + noEvent + `, rows: '` + raise

// write makes a change and its event durable.
func (s *Store) write(ctx context.Context, conn *pgxpool.Conn, c Change, a action, d Decision) error {
	detail, err := json.Marshal(c.detail())
	if err != nil {
		return err
	}
	row := c.After
	results, err := flush(ctx, conn.Conn(),
		statement{sql: s.sql(decideSQL), args: []string{
			row.Process, string(row.Position), strconv.FormatInt(row.Sequence, 10), strconv.FormatInt(int64(row.Epoch), 10),
			string(row.State), strconv.FormatBool(row.Failure != nil), strconv.FormatBool(row.Histories != c.Before.Histories),
			c.Before.Epoch.text(), string(row.Histories), strconv.FormatBool(c.looksAgain(a)), strconv.FormatBool(c.looksFirst(a)), strconv.FormatBool(c.passesOver(a))}},
		statement{sql: s.sql(decisionEventSQL), args: []string{
			row.Process, d.Actor, a.name, d.Reason, string(c.Before.Position), string(row.Position), string(detail)}},
		commit)
	if err == nil && !committed(results, 2) {
		return errNotAsLocked
	}
	return uncertain(err)
}

// looksAgain reports that a process goes on which halted over its clock, or is about to look, and
// that no operator has decided on what was stamped before its position: that is for Seek.
func (c Change) looksAgain(a action) bool {
	f := c.Before.Failure
	return a.name != "seek" && (c.Before.unsettled || f != nil && f.Class == ClassClock && c.After.Failure == nil)
}

// looksFirst reports that a process goes on from where it stands in a database that was restored, in
// any state: rows that were stamped before the position, because the clock was behind, are to be looked for.
func (c Change) looksFirst(a action) bool {
	f := c.Before.Failure
	return a.name == "restored" || a.name != "seek" && f != nil && f.Class == ClassRestored && c.After.Failure == nil
}

// passesOver reports that a cursor is moved on in a database that was restored, before the source has looked.
func (c Change) passesOver(a action) bool {
	return a.name == "seek" && c.Before.restored && c.After.Position > c.Before.Position
}

// detail is what the audit keeps of a change beside its positions.
func (c Change) detail() map[string]any {
	detail := map[string]any{"from_state": c.Before.State, "to_state": c.After.State}
	if f := c.Before.Failure; f != nil && c.After.Failure == nil {
		detail["record_id"], detail["attempts"], detail["error"] = f.RecordID, f.Attempts, f.Error
	}
	return detail
}
