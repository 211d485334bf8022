package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// Standing is the part of a cursor's row that decides whether rows may go.
type Standing struct {
	Process  string
	Position cursor.Position
	State    cursor.State
	// Class is the class of its failure; "" if it has none.
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
