package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// blockersSQL finds the transactions that a session waits for at a lock. Of a prepared one
// the server says no more than that it is one: it is found by the table.
const blockersSQL = `/* cursor.blockers */
SELECT
	'',
	b.pid,
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	` + doingSQL + `,
	'',
	0,
	0,
	0
FROM unnest(pg_blocking_pids($1::int)) b (pid)
LEFT JOIN pg_stat_activity a ON a.pid = b.pid
LEFT JOIN LATERAL (
	SELECT p.gid, p.owner, p.prepared
	FROM pg_locks w
	JOIN pg_locks h ON h.granted AND h.pid IS NULL AND h.locktype = 'relation' AND h.database = w.database AND h.relation = w.relation
	JOIN pg_locks x ON x.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = h.virtualtransaction
	JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
	WHERE b.pid = 0 AND w.pid = $1 AND NOT w.granted
	LIMIT 1
) p ON true
ORDER BY 6 NULLS LAST, 2
LIMIT 100`

// Blockers returns the transactions that the holder of a process's lease waits for at a
// lock, oldest first: while it waits so, no call of the receiver goes on. None: it does not
// wait, or there is no holder.
func (s *Store) Blockers(ctx context.Context, process string) ([]Locker, error) {
	holders, err := s.lockers(ctx, s.lockersOf(process))
	if err != nil || len(holders) == 0 || !holders[0].Worker() {
		return nil, err
	}
	return s.lockers(ctx, statement{sql: s.sql(blockersSQL), args: []string{strconv.Itoa(holders[0].PID)}})
}

// ask is once for statements that only read. Where the database does not answer, it says
// which transaction keeps readers from our tables, if one does.
func (s *Store) ask(ctx context.Context, statements ...statement) ([]*pgconn.Result, error) {
	results, err := s.once(ctx, s.config.answerTimeout(), beginRead, statements...)
	return results, s.nameExcluder(ctx, err)
}

// nameExcluder adds to ErrNoAnswer which transaction has locked one of our tables so that no
// one reads it.
func (s *Store) nameExcluder(ctx context.Context, err error) error {
	if !errors.Is(err, ErrNoAnswer) || ctx.Err() != nil {
		return err
	}
	all, lookErr := s.Excluders(ctx, 0)
	if lookErr != nil || len(all) == 0 {
		return err
	}
	return &ExcludedError{Holder: all[0], Err: err}
}

// ExcludedError is an ErrNoAnswer of which it is known why: a transaction keeps all readers from a
// table of the cursors.
type ExcludedError struct {
	Holder Locker
	Err    error
}

// Error says who it is, and what to do.
func (e *ExcludedError) Error() string {
	return fmt.Sprintf("%v: %s has locked a table of the cursors; %s", e.Err, e.Holder, e.Holder.Advice())
}

// Unwrap returns the error that came of it.
func (e *ExcludedError) Unwrap() error { return e.Err }

// excludersSQL finds who keeps all readers from a table, which may have partitions, or from one of ours.
const excludersSQL = tableLockersSQL + `
	WITH RECURSIVE tree AS (
		SELECT $1::oid AS oid
		UNION
		SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
	)
	SELECT oid FROM tree
	UNION ALL
	SELECT ('{schema}.' || name)::regclass FROM unnest(ARRAY['cursor', 'cursor_event', 'dead_letter']) name
)
ORDER BY 6 NULLS LAST, 2
LIMIT 100`

// Excluders returns the transactions that keep all readers from a table, by its oid, or from one of
// its partitions, or from a table of the cursors; oldest first. 0 is no table.
func (s *Store) Excluders(ctx context.Context, table uint32) ([]Locker, error) {
	all, err := s.lockers(ctx, statement{sql: s.sql(excludersSQL), args: []string{strconv.FormatUint(uint64(table), 10), "{" + allLocking + "}"}})
	return slices.DeleteFunc(all, Locker.Worker), err
}
