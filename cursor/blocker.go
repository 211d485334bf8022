package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// blockersSQL finds the transactions that a session waits for at a lock: those that hold it in a conflicting
// mode, or are first in line for such a mode. Of a prepared transaction the server only reports that it is one,
// so the query finds it by its lock. To wait for a row is to wait for the transaction that has locked it. Only
// the first session does so: it locks the tuple meanwhile, and the others wait for that lock. So the query
// follows the line to its head.
const blockersSQL = `/* cursor.blockers */
WITH RECURSIVE line AS (
	SELECT $1::int AS pid
	UNION
	SELECT h.pid
	FROM line
	JOIN pg_locks w ON w.pid = line.pid AND w.locktype = 'tuple' AND NOT w.granted
	JOIN pg_locks h ON h.locktype = 'tuple' AND h.granted AND (h.database, h.relation, h.page, h.tuple) = (w.database, w.relation, w.page, w.tuple)
), waited AS (
	SELECT w.*, c.conflicting
	FROM pg_locks w
	JOIN (VALUES
		('AccessShareLock', '{AccessExclusiveLock}'::text[]),
		('RowShareLock', '{ExclusiveLock,AccessExclusiveLock}'),
		('RowExclusiveLock', '{ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'),
		('ShareUpdateExclusiveLock', '{ShareUpdateExclusiveLock,ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'),
		('ShareLock', '{RowExclusiveLock,ShareUpdateExclusiveLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'),
		('ShareRowExclusiveLock', '{RowExclusiveLock,ShareUpdateExclusiveLock,ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'),
		('ExclusiveLock', '{RowShareLock,RowExclusiveLock,ShareUpdateExclusiveLock,ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'),
		('AccessExclusiveLock', '{AccessShareLock,RowShareLock,RowExclusiveLock,ShareUpdateExclusiveLock,ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}')
	) c (mode, conflicting) ON c.mode = w.mode
	WHERE w.pid IN (SELECT pid FROM line) AND NOT w.granted
), held AS (
	SELECT h.pid, h.virtualtransaction
	FROM waited w
	JOIN pg_locks h ON h.granted
		AND h.mode = ANY (w.conflicting)
		AND (h.locktype, h.database, h.relation, h.page, h.tuple, h.virtualxid, h.transactionid, h.classid, h.objid, h.objsubid)
			IS NOT DISTINCT FROM (w.locktype, w.database, w.relation, w.page, w.tuple, w.virtualxid, w.transactionid, w.classid, w.objid, w.objsubid)
), blocking AS (
	SELECT DISTINCT b.pid, NULL::xid AS prepared
	FROM line, unnest(pg_blocking_pids(line.pid)) b (pid)
	WHERE b.pid <> 0 AND b.pid NOT IN (SELECT waited.pid FROM waited)
	UNION
	SELECT 0, x.transactionid
	FROM held
	JOIN pg_locks x ON x.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = held.virtualtransaction
	WHERE held.pid IS NULL
)
SELECT
	'',
	b.pid,
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	` + doingSQL + `,
	coalesce((SELECT min(v.virtualtransaction) FROM pg_locks v WHERE v.pid = b.pid), ''),
	0,
	0,
	(b.pid <> 0 AND NOT EXISTS (SELECT 1 FROM held WHERE held.pid = b.pid))::int,
	0
FROM blocking b
LEFT JOIN pg_stat_activity a ON a.pid = b.pid
LEFT JOIN pg_prepared_xacts p ON p.transaction = b.prepared
WHERE b.pid <> 0 OR p.gid IS NOT NULL
ORDER BY 17, 6 NULLS LAST, 2
LIMIT 100`

// Blockers returns the transactions that the holder of a process's lease waits for at a lock. Those that have
// it come before those that are first in line for it, each oldest first. While the holder waits, none of its
// receiver calls goes on. The result is empty if the holder does not wait, or if there is no holder.
func (s *Store) Blockers(ctx context.Context, process string) ([]Locker, error) {
	holders, err := s.lockers(ctx, s.lockersOf(process))
	if err != nil || len(holders) == 0 || !holders[0].Worker() {
		return nil, err
	}
	return s.lockers(ctx, s.db.Statement(blockersSQL, strconv.Itoa(holders[0].PID)))
}

// ask is once for statements that only read. If the database does not answer because a transaction keeps
// readers from a table of these statements, the error names that transaction.
func (s *Store) ask(ctx context.Context, statements ...tables.Statement) ([]*pgconn.Result, error) {
	results, err := s.db.Once(ctx, s.db.Timeout, tables.BeginRead, statements...)
	return results, s.NameExcluder(ctx, err, s.db.Named(statements)...)
}

// NameExcluder adds to ErrNoAnswer the transaction that has locked one of these cursor tables against all
// readers, as an *ExcludedError. It returns any other error as it is.
func (s *Store) NameExcluder(ctx context.Context, err error, names ...string) error {
	if !errors.Is(err, ErrNoAnswer) || ctx.Err() != nil {
		return err
	}
	all, lookErr := s.excluders(ctx, 0, names)
	if lookErr != nil || len(all) == 0 {
		return err
	}
	return &ExcludedError{Holder: all[0], Err: err}
}

// ExcludedError is an ErrNoAnswer, or an ErrLocked, whose cause is known: a transaction keeps all readers from
// a table of the cursors.
type ExcludedError struct {
	Holder Locker
	Err    error
}

// Error names the transaction, and what to do.
func (e *ExcludedError) Error() string {
	return fmt.Sprintf("%v: %s %s; %s", e.Err, e.Holder, e.Holder.Has("a table of the cursors"), e.Holder.Advice())
}

// Unwrap returns the error that the lock caused.
func (e *ExcludedError) Unwrap() error { return e.Err }

// excludersSQL finds the transactions that keep all readers from a table, which may have partitions, or from
// some of our tables, or that are first in line to do so. A locked index, as during REINDEX, keeps readers from
// its table.
const excludersSQL = tableLockersSQL + `
	WITH RECURSIVE tree AS (
		SELECT $1::oid AS oid
		UNION
		SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
	), read AS (
		SELECT oid FROM tree
		UNION
		SELECT ('{schema}.' || name)::regclass FROM unnest($4::text[]) name
	)
	SELECT oid FROM read
	UNION
	SELECT i.indexrelid FROM pg_index i JOIN read ON i.indrelid = read.oid
)
ORDER BY 17, 6 NULLS LAST, 2
LIMIT 100`

// Excluders returns the transactions that keep all readers from a table, given by its oid, or from one of its
// partitions. The oid 0 means the tables of the cursors. Those that have the lock come before those that are in
// line for it, each oldest first.
func (s *Store) Excluders(ctx context.Context, table uint32) ([]Locker, error) {
	if table == 0 {
		return s.excluders(ctx, 0, tables.Read)
	}
	return s.excluders(ctx, table, nil)
}

func (s *Store) excluders(ctx context.Context, table uint32, own []string) ([]Locker, error) {
	all, err := s.lockers(ctx, s.db.Statement(excludersSQL, strconv.FormatUint(uint64(table), 10), "{"+allLocking+"}", "true", "{"+strings.Join(own, ",")+"}"))
	return slices.DeleteFunc(all, Locker.Worker), err
}
