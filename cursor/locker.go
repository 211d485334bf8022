package cursor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Locker is a transaction that holds the lock of a cursor's row: that of a worker
// while it delivers, or a stranger's, behind which nobody works.
type Locker struct {
	Process string
	// PID of its session; 0 for a prepared transaction.
	PID int
	// GID of a prepared transaction, else "".
	GID string
	// Application is the session's application_name, User its role.
	Application, User string
	// Since is when the transaction began, or was prepared, and Age how long that
	// is ago by the database's clock; zero when the role may not see it.
	Since time.Time
	Age   time.Duration
}

// Worker reports whether it is a worker's lease, or an operator at work, by its
// application name.
func (l Locker) Worker() bool {
	for _, ours := range []string{ApplicationLease, ApplicationTx, ApplicationOperator} {
		if strings.HasPrefix(l.Application, ours) {
			return true
		}
	}
	return false
}

// String names the transaction and how to find it.
func (l Locker) String() string {
	who := fmt.Sprintf("pid %d (application %q, user %q)", l.PID, l.Application, l.User)
	if l.PID == 0 {
		who = fmt.Sprintf("the prepared transaction %q (user %q)", l.GID, l.User)
	}
	if l.Since.IsZero() {
		return who
	}
	return who + " since " + l.Since.UTC().Format(time.RFC3339)
}

// Cure is what ends the transaction, as SQL.
func (l Locker) Cure() string {
	if l.PID == 0 {
		return fmt.Sprintf("COMMIT PREPARED or ROLLBACK PREPARED '%s'", strings.ReplaceAll(l.GID, "'", "''"))
	}
	return fmt.Sprintf("SELECT pg_terminate_backend(%d)", l.PID)
}

// lockersSQL finds who has locked which row: a row's xmax is the transaction that
// locked it, and that one holds the lock of its own id while it is open. It reads
// the whole table, which is small, and waits for nobody. xact_start is hidden
// from roles without pg_read_all_stats.
const lockersSQL = `/* cursor.lockers */
SELECT
	c.process_name,
	coalesce(l.pid, 0),
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint
FROM {schema}.cursor c
JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = c.xmax
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
WHERE l.mode = 'ExclusiveLock'
ORDER BY c.process_name, l.pid
LIMIT 10000`

// Lockers returns who holds the lock of which row at this moment, by process.
// Several sessions that share one lock are not found: see Strangers.
func (s *Store) Lockers(ctx context.Context) ([]Locker, error) { return s.lockers(ctx, lockersSQL) }

func (s *Store) lockers(ctx context.Context, sql string) ([]Locker, error) {
	results, err := s.ask(ctx, statement{s.sql(sql), nil})
	if err != nil {
		return nil, s.withCure("find who has locked the cursors", err)
	}
	var all []Locker
	for _, values := range results[0].Rows {
		p := parser{values: values}
		all = append(all, Locker{Process: p.text(0), PID: int(p.int(1)), GID: p.text(2),
			Application: p.text(3), User: p.text(4), Since: p.time(5), Age: time.Duration(p.int(6)) * time.Microsecond})
		if p.err != nil {
			return nil, s.withCure("find who has locked the cursors", p.err)
		}
	}
	return all, nil
}

// strangersSQL finds sessions that are no worker's and no operator's, and have a lock
// of the table of cursors such as one needs who locks its rows.
const strangersSQL = `/* cursor.strangers */
SELECT
	'',
	coalesce(l.pid, 0),
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN (
	pg_prepared_xacts p
	JOIN pg_locks x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction
) ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
WHERE l.granted
	AND l.locktype = 'relation'
	AND l.mode <> 'AccessShareLock'
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.relation = '{schema}.cursor'::regclass
ORDER BY 6 NULLS LAST, 2
LIMIT 100`

// Strangers returns the transactions beside workers and operators that may have
// locked rows of the cursor table, oldest first: those that Lockers does not find,
// as several that share a row (FOR SHARE) or one that locked it within a savepoint.
func (s *Store) Strangers(ctx context.Context) ([]Locker, error) {
	all, err := s.lockers(ctx, strangersSQL)
	return slices.DeleteFunc(all, Locker.Worker), err
}

// nameLockers adds to ErrLocked who it is.
func (s *Store) nameLockers(ctx context.Context, process string, err error) error {
	lockers, lookErr := s.Lockers(ctx)
	if lookErr != nil {
		return fmt.Errorf("%w; who it is could not be found: %w", err, lookErr)
	}
	for _, l := range lockers {
		switch {
		case l.Process != process:
		case l.Worker():
			return fmt.Errorf("%w: %s is delivering; wait longer, or for its call to end", err, l)
		default:
			return fmt.Errorf("%w: %s holds it; end its transaction, or: %s", err, l, l.Cure())
		}
	}
	strangers, lookErr := s.Strangers(ctx)
	if lookErr != nil || len(strangers) == 0 {
		return fmt.Errorf("%w; it is free by now: try again", err)
	}
	return fmt.Errorf("%w: %s has locked rows of its table; end that transaction, or: %s", err, strangers[0], strangers[0].Cure())
}
