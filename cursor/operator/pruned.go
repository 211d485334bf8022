package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// ErrBusy reports that another session removes rows of the table, that a seek of any process is under way, or that a worker
// was started with another configuration meanwhile.
var ErrBusy = errors.New("rows of the table are being removed by another session, a cursor is being moved, or a worker was just started with another configuration")

// Pruned is how far rows of a source's table are gone, in the order of its records.
type Pruned struct {
	// Table is the table that was asked about, with its schema.
	Table string
	// Through is the position of the last row that was removed.
	Through cursor.Position
	// Mode is that of the rule that removed the last rows, and Place where these rows are; "" if nowhere. If others were
	// removed before the last ones were marked, Mode has both, and Place is that of the others.
	Mode, Place string
	// Removed is how many rows were removed in all, by the server's estimate for a partition, and At when the last ones
	// were, by the database's clock.
	Removed int64
	At      time.Time
	// Apart: rows were removed that were noted in other orders alone, so that Through is not to be compared with positions
	// of the order that was asked about.
	Apart bool
}

// String describes what is gone, for people.
func (p Pruned) String() string {
	fate := "were removed"
	if p.Place != "" {
		fate = "are in " + visible.Line(p.Place)
	}
	return fmt.Sprintf("records of %s up to position %s %s (retention, mode %s)", visible.Line(p.Table), visible.Cut(string(p.Through)), fate, p.Mode)
}

// marks is the mode that leaves rows in the table.
const marks = "mark"

// Kept reports that all of the rows are in the table: they were marked, and none was removed before.
func (p Pruned) Kept() bool { return p.Mode == marks }

// Marks reports that the last rows were marked.
func (p Pruned) Marks() bool { return p.Kept() || strings.HasPrefix(p.Mode, marksAfter) }

// PrunedError refuses a seek to a place whose records are not all there any more, or may not be.
type PrunedError struct {
	Process string
	Pruned
}

func (e *PrunedError) Error() string {
	lacking := "them"
	switch {
	case e.Kept():
		lacking = "those of them that source.where leaves out"
	case e.Apart:
		lacking = "some of them"
	}
	if e.Apart {
		return fmt.Sprintf("%s, so this replay may lack %s: the positions of %s cannot be compared with that one. "+
			"To go there with what the table holds, add --pruned", e.Pruned, lacking, visible.Line(e.Process))
	}
	return fmt.Sprintf("%s, so this replay would lack %s. To send what is still there: "+
		"ordered-dispatcher seek %s --to-position %s -c FILE --reason …. To go back further with what the table holds, for example once the rows are put back, add --pruned",
		e.Pruned, lacking, visible.Shell(e.Process), visible.Shell(string(e.Through)))
}

// Standing is the part of a cursor's row that decides whether rows may go.
type Standing struct {
	Process  string
	Position cursor.Position
	State    cursor.State
	// Class is that of its failure; "" if it does not fail.
	Class cursor.Class
	// Late: its worker has yet to look for rows that were stamped before the position: see cursor.PromotedError.
	Late bool
	// Elsewhere: the position was made in another database, of which this one is a copy.
	Elsewhere bool
}

// Removal is what one transaction removed.
type Removal struct {
	// Through are the last positions that were removed, for each order that a process reads in: see Decision.Order.
	Through map[string]cursor.Position
	Rows    int64
	// Tables are the oids of the tables below the rule's one that had the rows, and of that one if it had some itself.
	Tables      []uint32
	Mode, Place string
}

// pruneTimeout bounds one transaction of Prune.
const pruneTimeout = 30 * time.Second

// ApplicationPrune is the application name of a transaction of Prune, before the name of the table.
const ApplicationPrune = "ordered-dispatcher prune "

// pruneSettingsSQL ends with the transaction. A transaction that writes to the table holds its fence, so it must not
// wait for a lock, nor stay open with a client that is gone. Its values are printed alike for every role.
const pruneSettingsSQL = `/* cursor.prune_settings */
SELECT
	set_config('application_name', $1, true),
	set_config('lock_timeout', '100ms', true),
	set_config('statement_timeout', '20s', true),
	set_config('idle_in_transaction_session_timeout', '10s', true),
	set_config('row_security', 'off', true),
	set_config('TimeZone', 'UTC', true),
	set_config('DateStyle', 'ISO', true),
	set_config('IntervalStyle', 'postgres', true),
	set_config('bytea_output', 'hex', true),
	set_config('extra_float_digits', '1', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true),
	set_config('jit', 'off', true)`

// seekKeySQL is the advisory lock of the database that keeps removals and seeks apart. All removals share it, and a seek
// has it alone. It is one for all tables, since a cursor may be on a partition of the table that loses rows, or on a table
// above it: names and the tree of partitions may change at any time, and a lock that goes by them would miss some. It ends
// with the transaction, so a pooler may be between.
const seekKeySQL = `hashtextextended('` + seekLock + `', 0)`

// These are names of advisory locks, the last two before the name of a table.
const (
	seekLock  = "ordered-dispatcher seek"
	pruneLock = "ordered-dispatcher pruned "
	dropLock  = "ordered-dispatcher drop "
)

// pruneLockSQL also takes the lock of the table, which one session at a time has that removes rows.
const pruneLockSQL = `/* cursor.prune_lock */
SELECT pg_try_advisory_xact_lock_shared(` + seekKeySQL + `) AND pg_try_advisory_xact_lock(hashtextextended('` + pruneLock + `' || $1, 0))`

const (
	awaitRemovalsSQL = `/* cursor.await_removals */ SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.` + seekKeySQL + `)`
	removalsOnlySQL  = `/* cursor.removals_only */ SELECT pg_try_advisory_xact_lock_shared(` + seekKeySQL + `)`
	lastEventSQL     = `/* cursor.last_event */ SELECT coalesce(max(id), 0) FROM {schema}.cursor_event`
	// configuredSQL reads the end of the audit alone, by its primary key.
	configuredSQL = `/* cursor.configured */ SELECT EXISTS (SELECT FROM {schema}.cursor_event WHERE id > $1 AND action = 'configure')`
)

// AwaitRemovals waits until no removal is under way, and keeps others away until the transaction ends. What it writes to
// the audit then, every later removal knows.
func AwaitRemovals(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, awaitRemovalsSQL)
	return err
}

// LastEvent returns the number of the last event of the audit. Each worker that is started with another configuration
// after that notes it with a larger one: see Prune. It returns ErrBusy, without a wait, if such a worker is just being
// started, or a seek is under way.
func (o *Operator) LastEvent(ctx context.Context) (int64, error) {
	results, err := o.ask(ctx, o.db.Statement(removalsOnlySQL), o.db.Statement(lastEventSQL))
	if err != nil {
		return 0, o.db.WithFix("read the audit", err)
	}
	alone, last := tables.Parser{Values: results[0].Rows[0]}, tables.Parser{Values: results[1].Rows[0]}
	if !alone.True(0) {
		return 0, o.held(ctx, ErrBusy, seekLock)
	}
	return last.Int(0), errors.Join(alone.Err, last.Err)
}

// standingsSQL has a snapshot of its own, taken after the lock: it sees every seek that came before. It locks no row:
// that would wait for a worker, and the worker for it.
const standingsSQL = `/* cursor.standings */
SELECT
	process_name,
	position,
	state,
	coalesce(failed_class, ''),
	coalesce(timeline <> ` + tables.TimelineSQL + `, false),
	coalesce(system_identifier <> ` + tables.SystemSQL + `, false) OR coalesce(database_oid <> ` + tables.DatabaseSQL + `, false)
FROM {schema}.cursor
ORDER BY process_name
LIMIT 100001`

// maxStandings is how many cursors a removal looks at.
const maxStandings = 100_000

// lastingSQL is the name under which cursor_pruned has a table (%s is its oid) that may be renamed or detached. It has the
// database as well: elsewhere, another table has the oid. No name of a table looks like it.
const lastingSQL = `'table ' || %s || ' of database ' || ` + tables.DatabaseSQL + ` || ' of system ' || ` + tables.SystemSQL

// modeSQL is the mode of a row after a removal, and placeSQL its place. Rows that were marked are in the table, so a mode
// that has removed others stays known beside it. ($4) and ($5) are those of the removal, and pruned is the row.
const (
	marksAfter = marks + " after "
	modeSQL    = `CASE
		WHEN $4 <> '` + marks + `' THEN $4
		WHEN pruned.mode = '` + marks + `' OR pruned.mode LIKE '` + marksAfter + `%' THEN pruned.mode
		ELSE '` + marksAfter + `' || pruned.mode END`
	placeSQL = `CASE WHEN $4 <> '` + marks + `' OR pruned.mode = '` + marks + `' THEN $5 ELSE pruned.place END`
)

// prunedSQL notes a removal under the name of the rule's table ($1), and under the lasting names of that table and of
// those that had the rows ($7), with the last positions ($3) of its orders ($2). The name alone comes along when the
// database is restored from a dump. A place is right only if every removal was noted in its order. So a name that has
// some gets no further order, and an order that no process reads in any more becomes a past one, which is no order. A past
// one whose rows were only marked changes once more, when others are removed.
var prunedSQL = `/* cursor.pruned_through */
WITH known (name) AS (
	SELECT $1::text
	UNION
	SELECT ` + fmt.Sprintf(lastingSQL, "t.oid") + `
	FROM unnest($7::text[]::oid[] || to_regclass($1)::oid) t (oid)
	WHERE t.oid IS NOT NULL
), past AS (
	UPDATE {schema}.cursor_pruned pruned
	SET
		kind = CASE WHEN kind LIKE '` + pastOrder + `%' THEN '' ELSE '` + pastOrder + `' END || kind,
		mode = ` + modeSQL + `,
		place = ` + placeSQL + `
	WHERE table_name IN (SELECT name FROM known)
		AND kind <> ALL ($2::text[])
		AND (kind NOT LIKE '` + pastOrder + `%' OR mode = '` + marks + `' AND $4 <> '` + marks + `')
)
INSERT INTO {schema}.cursor_pruned AS pruned (table_name, kind, through, mode, place, removed)
SELECT known.name, o.kind, o.through, $4::text, $5::text, $6::bigint
FROM known
CROSS JOIN unnest($2::text[], $3::text[]) o (kind, through)
WHERE NOT EXISTS (SELECT FROM {schema}.cursor_pruned p WHERE p.table_name = known.name)
	OR EXISTS (SELECT FROM {schema}.cursor_pruned p WHERE p.table_name = known.name AND p.kind = o.kind)
ON CONFLICT (table_name, kind) DO UPDATE SET
	through = greatest(pruned.through, excluded.through),
	mode = ` + modeSQL + `,
	place = ` + placeSQL + `,
	removed = pruned.removed + CASE WHEN excluded.through > pruned.through THEN excluded.removed ELSE 0 END,
	at = clock_timestamp()`

// pastOrder begins the kind of an order in which not all removals were noted.
const pastOrder = "past "

// pruneTx gives each statement a snapshot of its own, under any default isolation of the role: what is read after a
// lock must see what was committed before it.
var pruneTx = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// Prune calls f in a transaction in which no cursor moves back, with the cursors of the schema. It notes what f removed,
// and commits both. It returns ErrBusy, without a wait, if another session has the table or a seek is under way. table
// has its schema. since is the LastEvent of before the caller asked what processes read: if a worker was started with
// another configuration after that, Prune returns ErrBusy as well. cursor.ErrUncertain means that the COMMIT was not
// answered.
func (o *Operator) Prune(ctx context.Context, table string, since int64, f func(context.Context, pgx.Tx, []Standing) (Removal, error)) error {
	var refused error // by f, whose statements are about other tables than ours
	var made bool     // all statements before the COMMIT
	err := o.db.OnConnection(ctx, func(conn *pgxpool.Conn) error {
		return answer.Within(ctx, pruneTimeout, func(ctx context.Context) error {
			return pgx.BeginTxFunc(ctx, conn, pruneTx, func(tx pgx.Tx) error {
				err := o.prune(ctx, tx, table, since, func(ctx context.Context, tx pgx.Tx, standing []Standing) (removal Removal, err error) {
					removal, refused = f(ctx, tx, standing)
					return removal, refused
				})
				made = err == nil
				return err
			})
		})
	})
	doing := "remove rows of " + visible.Line(table)
	switch {
	case err == nil:
		return nil
	case refused != nil:
		return refused
	case made && !errors.Is(err, pgx.ErrTxCommitRollback):
		return o.db.WithFix(doing, tables.Uncertain(err))
	case errors.Is(err, ErrBusy):
		return o.held(ctx, err, seekLock, pruneLock+table)
	default:
		return o.db.WithFix(doing, err)
	}
}

func (o *Operator) prune(ctx context.Context, tx pgx.Tx, table string, since int64, f func(context.Context, pgx.Tx, []Standing) (Removal, error)) error {
	if _, err := tx.Exec(ctx, tables.Pin.SQL, pgx.QueryExecModeExec); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, pruneSettingsSQL, pgx.QueryExecModeExec, ApplicationPrune+table); err != nil {
		return err
	}
	var alone bool
	if err := tx.QueryRow(ctx, pruneLockSQL, pgx.QueryExecModeExec, table).Scan(&alone); err != nil {
		return err
	}
	if !alone {
		return ErrBusy
	}
	var configured bool
	if err := tx.QueryRow(ctx, o.db.SQL(configuredSQL), pgx.QueryExecModeExec, since).Scan(&configured); err != nil {
		return err
	}
	if configured {
		return ErrBusy
	}
	rows, err := tx.Query(ctx, o.db.SQL(standingsSQL), pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	standing, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Standing])
	if err != nil {
		return err
	}
	if len(standing) > maxStandings {
		return fmt.Errorf("there are more than %d cursors, and no more are looked at", maxStandings)
	}
	removal, err := f(ctx, tx, standing)
	if err != nil || removal.Rows == 0 {
		return err
	}
	oids := make([]string, len(removal.Tables))
	for i, oid := range removal.Tables {
		oids[i] = strconv.FormatUint(uint64(oid), 10)
	}
	orders := slices.Sorted(maps.Keys(removal.Through))
	through := make([]string, len(orders))
	for i, order := range orders {
		through[i] = string(removal.Through[order])
	}
	_, err = tx.Exec(ctx, o.db.SQL(prunedSQL), pgx.QueryExecModeExec, table, orders, through, removal.Mode, removal.Place, removal.Rows, oids)
	if err != nil {
		return fmt.Errorf("note how far rows are gone: %w", err)
	}
	return nil
}

// kindOf returns the tag of a position. Positions of other tags cannot be compared with it.
func kindOf(p cursor.Position) string {
	kind, _, _ := strings.Cut(string(p), ":")
	return kind
}

const prunedByNameSQL = `/* cursor.pruned */
SELECT table_name, through, mode, place, removed, (extract(epoch FROM at) * 1000000)::bigint::text, false
FROM {schema}.cursor_pruned
WHERE table_name = $1 AND kind = $2
LIMIT 1`

// Pruned returns how far a rule has removed rows of the table that has a name now, if all of that is known in an order.
func (o *Operator) Pruned(ctx context.Context, table, order string) ([]Pruned, error) {
	return o.lookUpPruned(ctx, prunedByNameSQL, table, order)
}

// prunedAroundSQL finds the furthest place in an order ($2), among those of a table ($1), of the tables above and below
// it, and of those that it was. Of those that have none in that order it finds the latest removal. Rows that were only
// marked have a place of their own, which comes after. A name has quotes or not: see Decision.Table. It uses the indexes of pg_inherits.
var prunedAroundSQL = `/* cursor.pruned_around */
WITH RECURSIVE above (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT i.inhparent FROM pg_inherits i JOIN above ON i.inhrelid = above.oid
), below (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.oid
), known (name) AS (
	SELECT $1::text
	UNION
	SELECT k.name
	FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace
	CROSS JOIN LATERAL (VALUES
		(n.nspname || '.' || c.relname),
		('"' || replace(n.nspname, '"', '""') || '"."' || replace(c.relname, '"', '""') || '"'),
		(` + fmt.Sprintf(lastingSQL, "c.oid") + `)
	) k (name)
	WHERE c.oid IN (SELECT oid FROM above UNION SELECT oid FROM below)
), noted AS (
	SELECT through, mode, place, removed, at, kind = $2 AS own, bool_or(kind = $2) OVER (PARTITION BY table_name) AS whole
	FROM {schema}.cursor_pruned
	WHERE table_name IN (SELECT name FROM known)
)
SELECT DISTINCT ON (own, mode = '` + marks + `') $1::text, through, mode, place, removed, (extract(epoch FROM at) * 1000000)::bigint::text, NOT own
FROM noted
WHERE own OR NOT whole
ORDER BY own DESC, mode = '` + marks + `', CASE WHEN own THEN through END DESC, at DESC
LIMIT 4`

// PrunedAround returns how far rows are gone that a process would read from a table in an order, as d has them. Rules of
// tables above and below it count, and what was removed while the table had another name, or was a partition.
func (o *Operator) PrunedAround(ctx context.Context, d cursor.Decision) ([]Pruned, error) {
	all, err := o.lookUpPruned(ctx, prunedAroundSQL, d.Table, d.Order)
	return gone(all, d), err
}

// gone leaves out rows that the source of a decision reads all the same.
func gone(all []Pruned, d cursor.Decision) []Pruned {
	return slices.DeleteFunc(all, func(p Pruned) bool { return d.Whole && p.Kept() })
}

// droppedSQL looks for the lasting name of a table ($1 is its oid).
var droppedSQL = `/* cursor.dropped */
SELECT EXISTS (
	SELECT
	FROM {schema}.cursor_pruned
	WHERE table_name = ` + fmt.Sprintf(lastingSQL, "$1::text::oid") + ` AND mode = 'drop' AND at >= $2::text::timestamptz
)`

// Dropped reports whether a rule of retention has taken a partition since a time of the database. When it noted that, no
// process needed a row of the partition, and no row could come any more.
func (o *Operator) Dropped(ctx context.Context, oid uint32, since time.Time) (bool, error) {
	results, err := o.ask(ctx, o.db.Statement(droppedSQL, strconv.FormatUint(uint64(oid), 10), since.UTC().Format(time.RFC3339Nano)))
	if err != nil {
		return false, o.db.WithFix("read whether retention has dropped a partition", err)
	}
	return string(results[0].Rows[0][0]) == "t", nil
}

func (o *Operator) lookUpPruned(ctx context.Context, sql, table, order string) ([]Pruned, error) {
	results, err := o.ask(ctx, o.db.Statement(sql, table, order))
	if err != nil {
		return nil, o.db.WithFix("read how far rows of "+visible.Line(table)+" are gone", err)
	}
	return parsePruned(results[0].Rows)
}

func parsePruned(rows [][][]byte) (all []Pruned, err error) {
	for _, values := range rows {
		p := tables.Parser{Values: values}
		all = append(all, Pruned{Table: p.Text(0), Through: cursor.Position(p.Text(1)), Mode: p.Text(2), Place: p.Text(3), Removed: p.Int(4), At: p.Time(5), Apart: p.True(6)})
		if p.Err != nil {
			return nil, p.Err
		}
	}
	return all, nil
}

// lacks returns a *PrunedError if records after a position are gone, or may be. from is where the cursor is.
func lacks(process string, from, to cursor.Position, all []Pruned) error {
	forward := kindOf(from) == kindOf(to) && to >= from // nothing comes again
	for _, p := range all {
		if p.Apart && !forward || !p.Apart && to < p.Through {
			return &PrunedError{Process: process, Pruned: p}
		}
	}
	return nil
}

const lockSeekSQL = `/* cursor.lock_seek */ SELECT pg_advisory_xact_lock(` + seekKeySQL + `)`

// checkPruned refuses a seek to a place whose records are gone, unless the operator takes what is left. conn is in the
// transaction of the decision. The lock comes first, with a statement of its own: the question after it sees what was
// removed before, and no removal that goes by the old place of the cursor ends after it.
func (o *Operator) checkPruned(ctx context.Context, conn *pgx.Conn, process string, from, to cursor.Position, d cursor.Decision) error {
	all := []tables.Statement{o.db.Statement(lockSeekSQL)}
	if d.Table != "" {
		all = append(all, o.db.Statement(prunedAroundSQL, d.Table, d.Order))
	}
	results, err := tables.Flush(ctx, conn, all...)
	if tables.GaveUp(err) || errors.Is(err, cursor.ErrNoAnswer) {
		err = o.held(ctx, err, seekLock)
	}
	if err != nil {
		return fmt.Errorf("find out whether retention has removed rows after %s: %w", visible.Cut(string(to)), err)
	}
	if d.Table == "" || d.Pruned {
		return nil
	}
	around, err := parsePruned(results[1].Rows)
	if err != nil {
		return err
	}
	return lacks(process, from, to, gone(around, d))
}

// rehearsePruned is checkPruned without a lock.
func (o *Operator) rehearsePruned(ctx context.Context, process string, from, to cursor.Position, d cursor.Decision) error {
	if d.Table == "" || d.Pruned {
		return nil
	}
	all, err := o.PrunedAround(ctx, d)
	if err != nil {
		return err
	}
	return lacks(process, from, to, all)
}

// detachTimeout is how long a partition waits for the transactions that use its table.
const detachTimeout = 20 * time.Second

// errPooler refuses a session that a pooler would give to others, with the lock and the settings.
var errPooler = errors.New("a connection pooler is in between, and to drop partitions takes a session of its own: connect to PostgreSQL directly, for example with a file for `ordered-dispatcher prune` alone")

const ownSessionSQL = `/* cursor.own_session */ SELECT pg_catalog.pg_backend_pid()`

const dropLockSQL = `/* cursor.drop_lock */ SELECT pg_try_advisory_lock(hashtextextended('` + dropLock + `' || $1, 0))`

// Drop calls f while no other session drops partitions of a table. It returns ErrBusy, without a wait, if one does.
// detach runs a statement that detaches a partition and cannot run in a transaction. It waits for transactions that use
// the table for up to 20 s. If its context ends, the server has ended the statement when it returns. Its session is the
// one that has the right to drop: if this program dies meanwhile, the server goes on with the statement, and the right
// lasts as long. Lock and settings are the session's, so a connection through a pooler is refused, and the session is
// closed.
func (o *Operator) Drop(ctx context.Context, table string, f func(ctx context.Context, detach func(context.Context, string) error) error) error {
	conn, err := o.db.Connect(ctx)
	if err != nil {
		return err
	}
	session := conn.Hijack() // so that no other statement gets its settings
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = session.Close(closing)
	}()
	run := func(ctx context.Context, statements ...string) error {
		err := ending(ctx, session, func(ctx context.Context) error {
			return answer.Within(ctx, detachTimeout+tables.Margin, func(ctx context.Context) error {
				for _, sql := range statements {
					if _, err := session.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return o.db.WithFix("detach a partition of "+visible.Line(table), err)
		}
		return nil
	}
	var pid uint32 // a pooler greets with one of its own
	err = answer.Within(ctx, o.db.Timeout, func(ctx context.Context) error {
		return session.QueryRow(ctx, ownSessionSQL, pgx.QueryExecModeExec).Scan(&pid)
	})
	if err == nil && pid != session.PgConn().PID() {
		err = errPooler
	}
	if err != nil {
		return o.db.WithFix("detach a partition of "+visible.Line(table), err)
	}
	if err := run(ctx,
		"SET search_path = pg_catalog, pg_temp",
		"SET lock_timeout = "+tables.Milliseconds(detachTimeout),
		"SET statement_timeout = "+tables.Milliseconds(detachTimeout)); err != nil {
		return err
	}
	var alone bool
	err = answer.Within(ctx, pruneTimeout, func(ctx context.Context) error {
		return session.QueryRow(ctx, dropLockSQL, pgx.QueryExecModeExec, table).Scan(&alone)
	})
	if err != nil {
		return o.db.WithFix("detach a partition of "+visible.Line(table), err)
	}
	if !alone {
		return o.held(ctx, ErrBusy, dropLock+table)
	}
	return f(ctx, func(ctx context.Context, statement string) error { return run(ctx, statement) })
}

// endTimeout is how long the server has to end a statement.
const endTimeout = 5 * time.Second

// ending calls f, which runs a statement. If ctx ends, it asks the server to end the statement, and waits for its word:
// a connection that is just closed leaves the statement running for a moment.
func ending(ctx context.Context, session *pgx.Conn, f func(context.Context) error) error {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		asking, done := context.WithTimeout(within, endTimeout)
		defer done()
		_ = session.PgConn().CancelRequest(asking)
		<-asking.Done() // f has returned, or the server is silent
		cancel()
	})()
	err := f(within)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}
