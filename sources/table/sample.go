package table

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// applicationRead is the application_name of reading transactions, which insert
// nothing.
const applicationRead = "ordered-dispatcher read"

// Each statement of a read takes its own snapshot, whatever the role's default
// isolation is: with one snapshot for all, the fence would protect nothing.
const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY`

// holdSQL keeps the name and the columns of the table as they are until the
// transaction ends; it waits for an ALTER TABLE at most as long as lock_timeout.
func (l *layout) holdSQL() string {
	return fmt.Sprintf("/* source.hold */ LOCK TABLE ONLY %s IN ACCESS SHARE MODE", l.sql())
}

// settingsSQL ends with the transaction: no session state, and a plan that
// follows the index whatever the statistics say. jit is off because the costs
// of what is disabled would set it going.
const settingsSQL = `/* source.settings */
SELECT
	set_config('application_name', '` + applicationRead + `', true),
	set_config('search_path', 'pg_catalog', true),
	set_config('row_security', 'off', true),
	set_config('TimeZone', 'UTC', true),
	set_config('statement_timeout', '30s', true),
	set_config('lock_timeout', '5s', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true),
	set_config('jit', 'off', true)`

// markSQL is statement 1 of the fence. It also says which server run this is,
// whether it is a standby, and whether the name still means the table that was
// inspected.
func (l *layout) markSQL() string {
	mark := l.micros("clock_timestamp()")
	if l.atType == "timestamp" {
		mark = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	if !l.ordersByTime() {
		mark = fmt.Sprintf("pg_sequence_last_value(%d)", l.sequence)
	}
	return fmt.Sprintf(`/* source.mark */
SELECT
	%s,
	extract(epoch FROM pg_postmaster_start_time()),
	pg_is_in_recovery(),
	to_regclass(%s)::oid = %d`, mark, literal(l.sql()), l.oid)
}

// treeSQL names the table, its partitions and the tables that inherit from it.
const treeSQL = `
WITH RECURSIVE tree (oid) AS (
	SELECT %d::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
)`

// writersSQL is statement 2 for stamps made after the lock: the transactions
// that hold the lock every inserter must hold. pg_locks shows it to every role,
// does not cache it, and lists prepared transactions, which have no pid. It reads
// the fast-path locks first; a lock only ever moves from there to the main table,
// so none is missed.
func (l *layout) writersSQL() string {
	return "/* source.writers */" + fmt.Sprintf(treeSQL, l.oid) + `
SELECT DISTINCT virtualtransaction, pid IS NULL
FROM pg_locks
WHERE locktype = 'relation'
	AND mode = 'RowExclusiveLock'
	AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND relation IN (SELECT oid FROM tree)
	AND pid IS DISTINCT FROM pg_backend_pid()
LIMIT 100000`
}

// For stamps made at the start, statement 2 is every open transaction. Three
// statements in this order: a session that prepares its transaction between the
// first and the last is seen by one of them, and a pooled session is left out
// only if it was harmless after its lock was seen.
const (
	openSQL = `/* source.open */
SELECT virtualtransaction, false, pid
FROM pg_locks
WHERE locktype = 'virtualxid' AND mode = 'ExclusiveLock' AND granted AND pid <> pg_backend_pid()
LIMIT 100000`

	preparedSQL = `/* source.prepared */
SELECT transaction::text, true, NULL
FROM pg_prepared_xacts
WHERE database = current_database()
LIMIT 100000`

	// Sessions that cannot insert into this table: of other databases, without a
	// user (autovacuum), and our own that write nothing but a cursor.
	harmlessSQL = `/* source.harmless */
SELECT pid
FROM pg_stat_activity
WHERE datid IS DISTINCT FROM (SELECT oid FROM pg_database WHERE datname = current_database())
	OR usesysid IS NULL
	OR usesysid = (SELECT usesysid FROM pg_stat_activity WHERE pid = pg_backend_pid())
		AND (application_name = '` + applicationRead + `' OR starts_with(application_name, '` + cursor.ApplicationLease + `'))
LIMIT 100000`
)
