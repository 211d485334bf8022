package operator

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// unsettledSQL is the timeline of a process that is tried again after it halted over its clock. No server has
// such a timeline: it is 0 if the position was made on this server, else the former timeline with a minus.
const unsettledSQL = `CASE WHEN coalesce(timeline, ` + tables.TimelineSQL + `) = ` + tables.TimelineSQL + ` THEN 0 ELSE -abs(timeline) END`

// restoredTimeline is cursor.RestoredTimeline in SQL.
var restoredTimeline = strconv.Itoa(cursor.RestoredTimeline)

// decideSQL writes a decision; the lock is held already. It can take a failure away ($6 = false), but not add
// one. Where the numbers leap to those of a new history ($7), the position belongs to the server on which the
// operator decided.
//
// The column timeline also says whether the source still has to look for rows that were stamped before the
// position. It then has a value that is the timeline of no server:
//
//	0                        look: the position was made on this server, or it is unknown what an earlier look would have found
//	-n                       look: the position was made on timeline n
//	cursor.RestoredTimeline  look: the database was restored
//
// A look is owed after a halt over the clock ($10), and in a database that was restored ($11). The column horizon
// shows the source which rows are newer than what was delivered, so it stays while a look is owed. It was restored
// with the database, unless the tables were loaded from a dump or copied: then the horizon at the decision
// counts. A seek after a restore passes over all rows that exist at that moment ($12).
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
		system_identifier = CASE WHEN $7::boolean THEN ` + tables.SystemSQL + ` ELSE system_identifier END,
		timeline = CASE
			WHEN ($10::boolean OR $11::boolean AND timeline = ` + restoredTimeline + `) AND NOT ` + tables.HorizonHoldsSQL + ` THEN 0
			WHEN $10 THEN ` + unsettledSQL + `
			WHEN $11 THEN ` + restoredTimeline + `
			WHEN $7 THEN ` + tables.TimelineSQL + `
			ELSE timeline END,
		database_oid = CASE WHEN $7 THEN ` + tables.DatabaseSQL + ` ELSE database_oid END,
		histories = $9::jsonb,
		horizon = CASE
			WHEN $10 OR $11 THEN CASE WHEN ` + tables.HorizonHoldsSQL + ` THEN horizon ELSE pg_snapshot_xmax(pg_current_snapshot()) END
			WHEN $7 OR $12::boolean OR position <> $2 AND timeline = ` + tables.TimelineSQL + ` THEN pg_snapshot_xmax(pg_current_snapshot())
			ELSE horizon END
	WHERE process_name = $1 AND epoch = $8
	RETURNING ` + tables.Took(`position = $2 AND sequence = $3 AND epoch = $4 AND state = $5 AND histories = $9::jsonb AND ($6 OR failed_attempts = 0)`, `''`) + `
)` + tables.OneRow

// A foreign trigger may drop what a worker notes, but not what an operator decides.
const decisionEventSQL = `/* cursor.decision_event */
WITH changed AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
	VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb || coalesce((
		SELECT jsonb_build_object('horizon', horizon::text) FROM {schema}.cursor WHERE process_name = $1 AND $3 = 'forget' AND ` + tables.HorizonHoldsSQL + `
	), '{}'))
	RETURNING 1
)` + tables.UnlessOne + `'` + tables.NoEvent + `, rows: '` + tables.Raise

// write makes a change and its event durable in one transaction.
func (o *Operator) write(ctx context.Context, conn *pgx.Conn, c Change, a action, d cursor.Decision) error {
	return o.writeWith(ctx, conn, c, a, d, nil)
}

// writeWith is write with further facts for the event, and with statements that come first.
func (o *Operator) writeWith(ctx context.Context, conn *pgx.Conn, c Change, a action, d cursor.Decision, facts map[string]any, first ...tables.Statement) error {
	all := c.detail()
	maps.Copy(all, facts)
	detail, err := json.Marshal(all)
	if err != nil {
		return err
	}
	row := c.After
	statements := append(first,
		o.db.Statement(decideSQL,
			row.Process,                             // $1
			string(row.Position),                    // $2
			strconv.FormatInt(row.Sequence, 10),     // $3
			strconv.FormatInt(int64(row.Epoch), 10), // $4
			string(row.State),                       // $5
			strconv.FormatBool(row.Failure != nil),  // $6: the failure stays
			strconv.FormatBool(c.settles()),         // $7: a history begins here
			text(c.Before.Epoch),                    // $8: as it was locked
			string(row.Histories),                   // $9
			strconv.FormatBool(c.looksAgain(a)),     // $10: a look is owed over the clock
			strconv.FormatBool(c.looksFirst(a)),     // $11: a look is owed over a restore
			strconv.FormatBool(c.passesOver(a)),     // $12: a seek has decided about all rows there are
		),
		o.db.Statement(decisionEventSQL,
			row.Process, d.Actor, a.name, d.Reason, string(c.Before.Position), string(row.Position), string(detail)),
		tables.Commit)
	results, err := tables.Flush(ctx, conn, statements...)
	if err == nil && !tables.Committed(results, len(statements)-1) {
		return tables.ErrNotAsLocked
	}
	return tables.Uncertain(err)
}

// errChanged reports that a row changed while a decision held its lock. A trigger can do that.
var errChanged = errors.New("the locked row changed under its lock")

// commitDecision makes a decision durable. The COMMIT has no time-out: see tables.OneRow.
func commitDecision(ctx context.Context, conn *pgx.Conn) error {
	results, err := tables.Flush(ctx, conn, tables.Statement{SQL: "SELECT pg_catalog.set_config('statement_timeout', '0', true)"}, tables.Commit)
	if err == nil && !tables.Committed(results, 1) {
		return errors.New("the transaction was rolled back")
	}
	return tables.Uncertain(err)
}

// looksAgain reports that a process which halted over its clock, or is about to look, goes on, and that no
// operator has decided about the rows that were stamped before its position. Seek makes that decision.
func (c Change) looksAgain(a action) bool {
	f := c.Before.Failure
	behind := f != nil && f.Class == cursor.ClassClock && c.After.Failure == nil
	return (behind || c.Before.Unsettled()) && !(a.name == "seek" && c.answers(behind))
}

// answers reports that a seek leaves nothing to look for. There are three such seeks: to where the process is
// already, which accepts that position; to a position before all rows that may have been stamped before the
// cursor; or past the rows that the halt is about.
func (c Change) answers(halted bool) bool {
	from, to := cursor.Position(""), c.After.Position
	if halted {
		from = c.Before.Failure.Position
	}
	return to == c.Before.Position || to <= from || from != "" && to > c.Before.Position
}

// looksFirst reports that a process, in any state, continues at its position in a database that was restored.
// Then the source has to look for rows that were stamped before the position, because the clock was behind.
func (c Change) looksFirst(a action) bool {
	f := c.Before.Failure
	return a.name == "restored" || a.name != "seek" && f != nil && f.Restored() && c.After.Failure == nil
}

// passesOver reports that an operator moves a cursor forward in a database that was restored, before the source
// has looked.
func (c Change) passesOver(a action) bool {
	return a.name == "seek" && c.Before.UnsettledRestore() && c.After.Position > c.Before.Position
}

// settles reports that the numbers are past all that may have been used on another server. A new history alone,
// as of SeekAnew, settles nothing about the server, and neither does a new range of epochs alone: see plan.
func (c Change) settles() bool { return c.After.Sequence >= c.Before.Sequence+cursor.HistoryGap }

// detail is what the audit keeps of a change besides its positions.
func (c Change) detail() map[string]any {
	detail := map[string]any{"from_state": c.Before.State, "to_state": c.After.State}
	if f := c.Before.Failure; f != nil && c.After.Failure == nil {
		detail["record_id"], detail["attempts"], detail["error"] = f.RecordID, f.Attempts, f.Error
	}
	if c.After.Sequence > c.Before.Sequence+1 {
		detail[fromSequence], detail[toSequence] = c.Before.Sequence, c.After.Sequence
	}
	return detail
}
