package tables

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// LetterColumns are the columns of a dead letter, without the contents of its record.
var LetterColumns = []string{
	"id", "process_name", "at", "position", "sequence", "table_name", "record_id", "key", "type", "record_created_at", "attempts", "first_failed_at",
	"error", "class", "resolution", "resolved_at", "resolved_by", "reason",
}

// LettersSQL selects dead letters, without the contents of their records. A WHERE follows.
var LettersSQL = `SELECT
	` + strings.Join(LetterColumns, ",\n\t") + `
FROM {schema}.dead_letter
`

// PlainLetterSQL selects one dead letter without the contents of its record, and LetterSQL one with them.
var (
	PlainLetterSQL = `/* cursor.plain_letter */
` + LettersSQL + `WHERE id = $1::bigint`

	LetterSQL = `/* cursor.one_dead_letter */
SELECT
	` + strings.Join(LetterColumns, ",\n\t") + `,
	headers,
	payload
FROM {schema}.dead_letter
WHERE id = $1::bigint`
)

// Binary makes the values of a query come in the binary form, so that no setting of the session changes how
// times and bytes are printed. It asks the server for their types first.
const Binary = pgx.QueryExecModeDescribeExec

// Reading runs f in a transaction that has our search_path and only reads.
func (db *DB) Reading(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return db.OnConnection(ctx, func(conn *pgxpool.Conn) error {
		return answer.Within(ctx, CommitTimeout, func(ctx context.Context) error {
			if _, err := Flush(ctx, conn.Conn(), BeginRead, Pin); err != nil {
				return err
			}
			return f(ctx, conn.Conn())
		})
	})
}

// resolveSQL marks an open dead letter and writes the audit row with it. It locks the row of the dead letter
// meanwhile, so a second operator finds it resolved. The event has the cursor's place: a receiver that asks for records
// gets a replay where it came.
var resolveSQL = `/* cursor.resolve */
WITH resolved AS (
	UPDATE {schema}.dead_letter
	SET resolution = $2, resolved_at = clock_timestamp(), resolved_by = $3, reason = $4
	WHERE id = $1::bigint AND resolution IS NULL
	RETURNING ` + Took(`resolution = $2`, `process_name`) + ` AS process_name, position, record_id
), changed AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, to_position, detail)
	SELECT
		resolved.process_name, $3, 'dead_letter_' || $2, $4, resolved.position,
		jsonb_build_object('dead_letter', $1::bigint, 'record_id', record_id, 'sequence', c.sequence, 'position', c.position)
	FROM resolved
	LEFT JOIN {schema}.cursor c ON c.process_name = resolved.process_name
	RETURNING 1
)` + UnlessOne + `CASE WHEN EXISTS (SELECT 1 FROM resolved) THEN '` + NoEvent + `' ELSE 'the row is not as it was locked' END || ', rows changed: '` + Raise

// Resolve marks an open dead letter as resolved, together with its event. It raises an error that NotAsLocked
// recognizes if the dead letter is not open.
func (db *DB) Resolve(id int64, resolution, actor, reason string) Statement {
	return db.Statement(resolveSQL, strconv.FormatInt(id, 10), resolution, actor, reason)
}
