package table

import (
	"fmt"
	"math"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// applicationRead begins the application_name of reading transactions, which insert nothing. After it comes the end
// of the session's own name, by which others know it.
const applicationRead = "ordered-dispatcher read"

// applicationRest is how much of the session's own name fits after that and a space: a name has 63 bytes.
const applicationRest = "39"

// Each statement of a read takes its own snapshot, whatever the role's default isolation is. With one snapshot for
// all, the fence would protect nothing.
const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY`

// holdSQL keeps the name and the columns of the table as they are until the transaction ends. It waits for an ALTER
// TABLE for at most lock_timeout. It takes the lock of LOCK TABLE … IN ACCESS SHARE MODE, for which a grant on
// columns would not suffice.
func (l *layout) holdSQL() string {
	return fmt.Sprintf("/* source.hold */ SELECT FROM ONLY %s LIMIT 0", l.sql())
}

// settingsSQL ends with the transaction and leaves no session state. Values are printed alike for every role, and the
// plan follows the index whatever the statistics are. jit is off because the costs of the disabled plans would start
// it. Before these settings, a role's search_path may put any function or operator in the place of PostgreSQL's.
const settingsSQL = `/* source.settings */
SELECT
	pg_catalog.set_config('application_name', pg_catalog.concat('` + applicationRead + ` ', pg_catalog.right(pg_catalog.current_setting('application_name'), ` + applicationRest + `)), true),
	pg_catalog.set_config('search_path', 'pg_catalog', true),
	pg_catalog.set_config('row_security', 'off', true),
	pg_catalog.set_config('TimeZone', 'UTC', true),
	pg_catalog.set_config('DateStyle', 'ISO', true),
	pg_catalog.set_config('IntervalStyle', 'postgres', true),
	pg_catalog.set_config('bytea_output', 'hex', true),
	pg_catalog.set_config('extra_float_digits', '1', true),
	pg_catalog.set_config('quote_all_identifiers', 'off', true),
	pg_catalog.set_config('standard_conforming_strings', 'on', true),
	pg_catalog.set_config('statement_timeout', '30s', true),
	pg_catalog.set_config('lock_timeout', '5s', true),
	pg_catalog.set_config('enable_indexscan', 'on', true),
	pg_catalog.set_config('enable_seqscan', 'off', true),
	pg_catalog.set_config('enable_bitmapscan', 'off', true),
	pg_catalog.set_config('enable_sort', 'off', true),
	pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true),
	pg_catalog.set_config('jit', 'off', true)`

// readSettingsSQL is settingsSQL for reading records, which are in UTF-8. Inspect looks at the session's own
// encoding, because sinks that work in the database have that encoding, too.
const readSettingsSQL = settingsSQL + `,
	CASE WHEN pg_catalog.current_setting('client_encoding') OPERATOR(pg_catalog.<>) 'UTF8' THEN pg_catalog.set_config('client_encoding', 'UTF8', true) END`

// markSQL is statement 1 of the fence. It also returns which server run this is, whether it is a standby, and whether
// the name still means the table that was inspected.
func (l *layout) markSQL() string {
	mark := l.micros("clock_timestamp()")
	if l.atType == "timestamp" {
		mark = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	if !l.ordersByTime() {
		mark = l.lastID()
	}
	return fmt.Sprintf(`/* source.mark */
SELECT
	%s,
	`+prepared.RunSQL+`,
	pg_is_in_recovery(),
	to_regclass(%s)::oid = %d`, mark, literal(l.sql()), l.oid)
}

// lastID is the highest id that the sequence has made since it was last set. If it has made none, lastID is the one
// before its next.
func (l *layout) lastID() string {
	return fmt.Sprintf("(SELECT CASE WHEN is_called OR last_value = %d THEN last_value ELSE last_value - 1 END FROM %s)", int64(math.MinInt64), l.sequenceName)
}

// treeSQL names the table, its partitions and the tables that inherit from it. As lineage it names these and the
// tables that the table itself is a part of.
const treeSQL = `
WITH RECURSIVE tree (oid) AS (
	SELECT %[1]d::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
), above (oid) AS (
	SELECT %[1]d::oid
	UNION
	SELECT i.inhparent FROM pg_inherits i JOIN above ON i.inhrelid = above.oid
), lineage (oid) AS (
	SELECT oid FROM tree
	UNION
	SELECT oid FROM above
)`

// writersSQL is statement 2 for stamps made after the lock: it finds the transactions that hold the lock that every
// inserter must hold. A row that is routed into a partition was stamped before the partition was locked, but after
// the table above it was locked: hence the whole lineage. pg_locks shows locks to every role, does not cache them,
// and lists prepared transactions, which have no pid. It reads the fast-path locks first. A lock only ever moves from
// there to the main table, so the read misses none.
func (l *layout) writersSQL() string {
	return "/* source.writers */" + fmt.Sprintf(treeSQL, l.oid) + `
SELECT DISTINCT virtualtransaction, pid IS NULL
FROM pg_locks
WHERE locktype = 'relation'
	AND mode = 'RowExclusiveLock'
	AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND relation IN (SELECT oid FROM lineage)
	AND pid IS DISTINCT FROM pg_backend_pid()
LIMIT 100000`
}

// writerQueries are statement 2.
func (l *layout) writerQueries() []string {
	if l.stamp == stampAtStart {
		return []string{waitingSQL, activitySQL, preparedSQL}
	}
	return []string{l.writersSQL()}
}

// writers combines the results of writerQueries.
func (l *layout) writers(found [][][][]byte) ([]writer, error) {
	if l.stamp == stampAtStart {
		waiting, sessions, prepared := found[0], found[1], found[2]
		return startedWriters(string(waiting[0][0]), sessions, prepared)
	}
	var writers []writer
	for _, values := range found[0] {
		transaction, prepared := values[0], values[1]
		writers = append(writers, writer{id: string(transaction), prepared: string(prepared) == "t"})
	}
	return writers, nil
}
