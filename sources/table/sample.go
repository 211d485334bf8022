package table

import (
	"fmt"
	"strconv"

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
// Its lock is that of LOCK TABLE … IN ACCESS SHARE MODE, for which a grant on
// columns would not suffice.
func (l *layout) holdSQL() string {
	return fmt.Sprintf("/* source.hold */ SELECT FROM ONLY %s LIMIT 0", l.sql())
}

// settingsSQL ends with the transaction: no session state, values printed alike
// for every role, and a plan that follows the index whatever the statistics say. jit is off because the costs
// of what is disabled would set it going. Before it, a role's search_path may
// put any function or operator in the place of PostgreSQL's.
const settingsSQL = `/* source.settings */
SELECT
	pg_catalog.set_config('application_name', '` + applicationRead + `', true),
	pg_catalog.set_config('search_path', 'pg_catalog', true),
	pg_catalog.set_config('row_security', 'off', true),
	pg_catalog.set_config('TimeZone', 'UTC', true),
	pg_catalog.set_config('DateStyle', 'ISO', true),
	pg_catalog.set_config('IntervalStyle', 'postgres', true),
	pg_catalog.set_config('bytea_output', 'hex', true),
	pg_catalog.set_config('extra_float_digits', '1', true),
	pg_catalog.set_config('statement_timeout', '30s', true),
	pg_catalog.set_config('lock_timeout', '5s', true),
	pg_catalog.set_config('enable_indexscan', 'on', true),
	pg_catalog.set_config('enable_seqscan', 'off', true),
	pg_catalog.set_config('enable_bitmapscan', 'off', true),
	pg_catalog.set_config('enable_sort', 'off', true),
	pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true),
	pg_catalog.set_config('jit', 'off', true)`

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

// treeSQL names the table, its partitions and the tables that inherit from it;
// and, as lineage, these and what the table itself is a part of.
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

// writersSQL is statement 2 for stamps made after the lock: the transactions
// that hold the lock every inserter must hold. A row that is routed into a
// partition was stamped before the partition was locked, but after the table
// above it was: hence the whole lineage. pg_locks shows locks to every role,
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
	AND relation IN (SELECT oid FROM lineage)
	AND pid IS DISTINCT FROM pg_backend_pid()
LIMIT 100000`
}

// For stamps made at the start, statement 2 is every open transaction. Three
// statements in this order: a session that prepares its transaction between the
// first and the last is seen by one of them, and what the last says of a session
// is true of its transaction seen before, unless that one has ended by then.
const (
	openSQL = `/* source.open */
SELECT virtualtransaction, pid
FROM pg_locks
WHERE locktype = 'virtualxid' AND mode = 'ExclusiveLock' AND granted AND pid <> pg_backend_pid()
LIMIT 100000`

	preparedSQL = `/* source.prepared */
SELECT transaction::text
FROM pg_prepared_xacts
WHERE database = current_database()
LIMIT 100000`

	// Which sessions cannot insert into this table: those of other databases,
	// without a user (autovacuum), and our own that write nothing but a cursor.
	// And the earliest stamp of those that our role may look into: the start of
	// the transaction, or the arrival of the message a session is at, which is
	// the stamp of a second transaction in that message, or of one that is
	// chained to the first. It is NULL for other roles' sessions without
	// pg_read_all_stats.
	activitySQL = `/* source.activity */
SELECT
	pid,
	datid IS DISTINCT FROM (SELECT oid FROM pg_database WHERE datname = current_database())
		OR usesysid IS NULL
		OR usesysid = (SELECT usesysid FROM pg_stat_activity WHERE pid = pg_backend_pid())
			AND (application_name = '` + applicationRead + `'
				OR starts_with(application_name, '` + cursor.ApplicationLease + `')
				OR starts_with(application_name, '` + cursor.ApplicationOperator + `')),
	xact_start IS NOT NULL,
	(extract(epoch FROM least(xact_start, CASE WHEN backend_type = 'client backend' AND state <> 'idle' THEN query_start END)) * 1000000)::bigint
FROM pg_stat_activity
WHERE pid <> pg_backend_pid()
LIMIT 100000`
)

// writerQueries are statement 2.
func (l *layout) writerQueries() []string {
	if l.stamp == stampAtStart {
		return []string{openSQL, preparedSQL, activitySQL}
	}
	return []string{l.writersSQL()}
}

// writers puts together what writerQueries found.
func (l *layout) writers(found [][][][]byte) ([]writer, error) {
	if l.stamp == stampAtStart {
		return openWriters(found[0], found[1], found[2])
	}
	var writers []writer
	for _, values := range found[0] {
		writers = append(writers, writer{id: string(values[0]), prepared: string(values[1]) == "t"})
	}
	return writers, nil
}

// openWriters puts together what openSQL, preparedSQL and activitySQL found.
func openWriters(open, prepared, sessions [][][]byte) ([]writer, error) {
	active, err := activities(sessions)
	if err != nil {
		return nil, err
	}
	var writers []writer
	for _, values := range open {
		pid := string(values[1])
		a, ok := active[pid]
		delete(active, pid)
		if ok && !a.harmless { // a session that is not there has ended, or is only starting
			writers = append(writers, writer{id: string(values[0]), session: a.pid, since: a.since, dated: a.dated && a.open})
		}
	}
	for _, values := range prepared {
		writers = append(writers, writer{id: string(values[0]), prepared: true})
	}
	for pid, a := range active { // they have begun since, or are about to
		if !a.harmless && a.dated {
			writers = append(writers, writer{id: "session " + pid, session: a.pid, since: a.since, dated: true})
		}
	}
	return writers, nil
}

// activity is what activitySQL says of one session.
type activity struct {
	pid      int
	harmless bool
	open     bool // in a transaction, as far as we may see
	since    int64
	dated    bool
}

func activities(rows [][][]byte) (map[string]activity, error) {
	active := make(map[string]activity, len(rows))
	for _, values := range rows {
		a := activity{harmless: string(values[1]) == "t", open: string(values[2]) == "t", dated: values[3] != nil}
		var err error
		if a.pid, err = strconv.Atoi(string(values[0])); err != nil {
			return nil, fmt.Errorf("parse a pid: %w", err)
		}
		if a.dated {
			if a.since, err = strconv.ParseInt(string(values[3]), 10, 64); err != nil {
				return nil, fmt.Errorf("parse the start of a transaction: %w", err)
			}
		}
		active[string(values[0])] = a
	}
	return active, nil
}
