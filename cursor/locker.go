package cursor

import (
	"context"
	"fmt"
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
// Several sessions that share one lock (FOR SHARE) are not found.
func (s *Store) Lockers(ctx context.Context) ([]Locker, error) {
	results, err := s.ask(ctx, statement{s.sql(lockersSQL), nil})
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
	return fmt.Errorf("%w; it is free by now, or shared by several: try again", err)
}
