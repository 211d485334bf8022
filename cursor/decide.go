package cursor

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// decideSQL writes a decision; the lock is held already. It can take a failure away ($6 = false), but not add
// one. The horizon stays while a promotion is not noted, because the source still has to look for what it
// marks. Where the numbers leap to those of a new history ($7), the position belongs to the server on which the
// operator decided. No history is settled before the source has looked: after a halt over the clock ($10), or
// in a database that was restored ($11). The horizon shows which rows are newer than what was delivered. It was
// restored with the database, unless the tables were loaded from a dump or copied. Then the horizon at the
// decision counts. If a look was owed before that, it is no longer known what it would have found (timeline 0).
// A seek after a restore passes over all rows that exist at that moment ($12).
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

// horizonHoldsSQL reports that the horizon of a row counts transactions of this database. It does not if the
// row comes from another database, or if the table is younger than the horizon: it was loaded from a dump. Of
// all catalog rows of a table, only those of its system columns (ctid is -1) never change after the table is
// made.
const horizonHoldsSQL = `coalesce(system_identifier = ` + systemSQL + ` AND database_oid = ` + databaseSQL + ` AND horizon <= pg_snapshot_xmax(pg_current_snapshot()) AND horizon::text::bigint > (
			SELECT now.xid - mod(now.xid - made.xmin::text::bigint, 4294967296)
			FROM pg_attribute made, (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid) now
			WHERE made.attrelid = cursor.tableoid AND made.attnum = -1
		), false)`

// A foreign trigger may drop what a worker notes, but not what an operator decides.
const decisionEventSQL = `/* cursor.decision_event */
WITH changed AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
	VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb || coalesce((
		SELECT jsonb_build_object('horizon', horizon::text) FROM {schema}.cursor WHERE process_name = $1 AND $3 = 'forget' AND ` + horizonHoldsSQL + `
	), '{}'))
	RETURNING 1
)` + unlessOne + `'` + noEvent + `, rows: '` + raise

// write makes a change and its event durable in one transaction.
func (s *Store) write(ctx context.Context, conn *pgxpool.Conn, c Change, a action, d Decision) error {
	detail, err := json.Marshal(c.detail())
	if err != nil {
		return err
	}
	row := c.After
	results, err := flush(ctx, conn.Conn(),
		statement{sql: s.sql(decideSQL), args: []string{
			row.Process, string(row.Position), strconv.FormatInt(row.Sequence, 10), strconv.FormatInt(int64(row.Epoch), 10),
			string(row.State), strconv.FormatBool(row.Failure != nil), strconv.FormatBool(c.settles()),
			c.Before.Epoch.text(), string(row.Histories), strconv.FormatBool(c.looksAgain(a)), strconv.FormatBool(c.looksFirst(a)), strconv.FormatBool(c.passesOver(a))}},
		statement{sql: s.sql(decisionEventSQL), args: []string{
			row.Process, d.Actor, a.name, d.Reason, string(c.Before.Position), string(row.Position), string(detail)}},
		commit)
	if err == nil && !committed(results, 2) {
		return errNotAsLocked
	}
	return uncertain(err)
}

// looksAgain reports that a process which halted over its clock, or is about to look, goes on, and that no
// operator has decided about the rows that were stamped before its position. Seek makes that decision.
func (c Change) looksAgain(a action) bool {
	f := c.Before.Failure
	behind := f != nil && f.Class == ClassClock && c.After.Failure == nil
	return (behind || c.Before.unsettled) && !(a.name == "seek" && c.answers(behind))
}

// answers reports that a seek leaves nothing to look for. There are three such seeks: to where the process is
// already, which accepts that position; to a position before all rows that may have been stamped before the
// cursor; or past the rows that the halt is about.
func (c Change) answers(halted bool) bool {
	from, to := Position(""), c.After.Position
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
	return a.name == "seek" && c.Before.restored && c.After.Position > c.Before.Position
}

// settles reports that the numbers are past all that may have been used on another server. A new history alone,
// as of SeekAnew, settles nothing about the server, and neither does a new range of epochs alone: see plan.
func (c Change) settles() bool { return c.After.Sequence >= c.Before.Sequence+HistoryGap }

// detail is what the audit keeps of a change besides its positions.
func (c Change) detail() map[string]any {
	detail := map[string]any{"from_state": c.Before.State, "to_state": c.After.State}
	if f := c.Before.Failure; f != nil && c.After.Failure == nil {
		detail["record_id"], detail["attempts"], detail["error"] = f.RecordID, f.Attempts, f.Error
	}
	return detail
}
