package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/ending"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Locker is a transaction that holds the lock of a cursor's row. It is a worker's, during a delivery, or a
// stranger's; while a stranger has the lock, no worker can work.
type Locker struct {
	Process string
	// PID is the process id of its session; 0 for a prepared transaction.
	PID int
	// GID is the identifier of a prepared transaction, else "".
	GID string
	// Application is the session's application_name, User its role.
	Application, User string
	// Since is when the transaction began, or was prepared, and Age how long ago that was by the database's
	// clock; both are zero if the role may not see it.
	Since time.Time
	Age   time.Duration
	// Unfinished is for how long the server has been waiting for the client in the middle of a command of the
	// session. It is 0 if the server does not wait so, or the role may not see it. The server never ends that
	// wait by itself.
	Unfinished time.Duration
	// Running is for how long the server has worked on a command of the session, or waited for something within
	// it; 0 as for Unfinished.
	Running time.Duration
	// Replicating reports that the session's COMMIT is done here and waits for a synchronous standby.
	Replicating bool
	// HiddenFrom is the role that asks, if the server has synchronous standbys and hides from that role what
	// the session waits for: it may be in the state of Replicating. Else "".
	HiddenFrom string
	// TimesHiddenFrom is the role that asks, if the server hides from that role how long the transaction has
	// been going on: Since, Age, Unfinished and Running are zero then. Else "".
	TimesHiddenFrom string
	// MayBeCommitted reports that this is a prepared transaction, and that the server has synchronous standbys.
	// Its COMMIT PREPARED may be done and wait for one.
	MayBeCommitted bool
	// Unchanged is for how long nothing has been written to the cursor's row. Only Lockers sets it.
	Unchanged time.Duration
	// Certain reports that it has a lock of the whole table, which keeps all other sessions from locking a row
	// there. For any other result of Strangers it is not known which rows it has locked.
	Certain bool
	// Queued reports that it waits for the lock itself, and is the first in line. Sessions that ask later wait
	// after it.
	Queued bool
	// Call is how long the open call of a worker's sink had been going on when the worker last reported it. It
	// is 0 if the worker has reported nothing since its last checkpoint, or the role may not see it. Only
	// Lockers sets it.
	Call time.Duration
	// Transaction is the virtual id of the transaction, which every role may see. It distinguishes the
	// transaction from the next one of its session. It is "" if the session is in the way because of a client's
	// message, with all transactions of that message: then Since is when the message came.
	Transaction string
}

// Worker reports whether the application name is that of a worker's lease, or of an operator at work.
func (l Locker) Worker() bool {
	for _, ours := range []string{ApplicationLease, ApplicationTx, ApplicationOperator} {
		if strings.HasPrefix(l.Application, ours) {
			return true
		}
	}
	return false
}

// Operator reports whether the application name is that of an operator at work.
func (l Locker) Operator() bool { return strings.HasPrefix(l.Application, ApplicationOperator) }

// String names the transaction and how to find it.
func (l Locker) String() string {
	who := fmt.Sprintf("pid %d (application %q, user %q)", l.PID, l.Application, l.User)
	if l.PID == 0 {
		who = fmt.Sprintf("the prepared transaction %q (user %q)", l.GID, l.User)
	}
	if !l.Since.IsZero() {
		who += " since " + l.Since.UTC().Format(time.RFC3339)
	}
	if l.Replicating {
		who += ", whose COMMIT waits for a synchronous standby"
	}
	if l.HiddenFrom != "" {
		who += ", " + MayReplicate
	}
	if l.Torn() {
		who += fmt.Sprintf(", which sent half of a command and then nothing for %v: its client is gone, or the network to it is dead", l.Unfinished.Round(time.Second))
	}
	return who
}

// shortTear is for how long half of a command may be under way before it counts as torn: the other half will
// not come.
const shortTear = 5 * time.Second

// Torn reports that the server has been waiting for the rest of a command for longer than a network takes.
func (l Locker) Torn() bool { return l.Unfinished >= shortTear }

// KeepReplicating is what to do about a COMMIT that waits for a synchronous standby. If its session is ended,
// the server answers as if it had succeeded, while no standby has it.
const KeepReplicating = "do not end the session: what it has committed would be lost in a failover. Bring a synchronous standby back, or take it out of synchronous_standby_names and reload"

// MayReplicate describes a session that may be such a COMMIT, as far as the role may see.
const MayReplicate = "which may be a COMMIT that waits for a synchronous standby"

// KeepHidden is what to do about a session if a role may not see whether it is such a COMMIT.
func KeepHidden(role string) string {
	return fmt.Sprintf("do not end the session unless you know that it is not a COMMIT that waits for a synchronous standby: what such a COMMIT has committed "+
		"would be lost in a failover. Role %s cannot see it. To see it: %s", visible.Line(pgx.Identifier{role}.Sanitize()), GrantStats(role))
}

// GrantStats is the SQL that lets a role see what the server hides about the sessions of other roles.
func GrantStats(role string) string {
	return "GRANT pg_read_all_stats TO " + visible.SQL(pgx.Identifier{role}.Sanitize())
}

// WhileReplicating is what such a COMMIT of a worker means for delivery. The worker gives up on it after
// tables.CommitTimeout and reads the row: the advance is there, on this server alone.
const WhileReplicating = "its worker waits for 30 s, looks whether it took place, and goes on; so one checkpoint goes out in 30 s, and in a failover what it delivered comes again"

// lookFirst is what to do about a prepared transaction where commits wait for synchronous standbys. While its
// COMMIT PREPARED waits, it looks like one about which no decision was made.
const lookFirst = "look first, as a superuser or with pg_read_all_stats, whether its COMMIT PREPARED waits for a synchronous standby: " +
	"SELECT pid, query FROM pg_stat_activity WHERE wait_event = 'SyncRep'. If it does, it is committed: " + KeepReplicating + ". If it does not: "

// Fix is the SQL that ends the transaction, or the reason not to. The SQL ends no other transaction of the
// session, and no COMMIT that has begun to wait for a standby in the meantime.
func (l Locker) Fix() string {
	if l.Replicating {
		return KeepReplicating
	}
	if l.HiddenFrom != "" {
		return KeepHidden(l.HiddenFrom)
	}
	if l.PID == 0 && l.MayBeCommitted {
		return lookFirst + "COMMIT PREPARED or ROLLBACK PREPARED " + visible.Literal(l.GID)
	}
	if l.PID == 0 {
		return "COMMIT PREPARED or ROLLBACK PREPARED " + visible.Literal(l.GID)
	}
	if sql := l.SQL(); sql != "" {
		return sql
	}
	return "look again: its transaction cannot be told from the next one of its session"
}

// SQL is Fix if that can be run at once, without another look; "" if not.
func (l Locker) SQL() string {
	if l.PID == 0 || l.Replicating || l.HiddenFrom != "" {
		return ""
	}
	return ending.Transaction{PID: l.PID, Virtual: l.Transaction, Since: l.Since}.SQL()
}

// Has describes that it has a lock of something, or is in line for it.
func (l Locker) Has(what string) string {
	if l.Queued {
		return "waits for a lock of all of " + what + ", and who reads that waits after it"
	}
	return "has locked " + what
}

// Lock describes the lock that another session waits for.
func (l Locker) Lock() string {
	if l.Queued {
		return "a lock that " + visible.Line(l.String()) + " waits for, too, and comes first"
	}
	return "a lock that " + visible.Line(l.String()) + " has"
}

// Locks describes which lock a result of Strangers has, as far as that is known.
func (l Locker) Locks() string {
	if l.Certain {
		return "has locked the table"
	}
	return "may have locked the row: it has locked rows of the table, or written to it"
}

// Advice is Step in one line.
func (l Locker) Advice() string {
	next, sql := l.Step()
	if sql == "" {
		return next
	}
	return next + ": " + sql
}

// Step is what to do about the transaction, as the end of a sentence, and the SQL that comes after it; "" if there is
// none to run at once.
func (l Locker) Step() (next, sql string) {
	if l.Replicating || l.HiddenFrom != "" || l.MayBeCommitted {
		return l.Fix(), ""
	}
	next = "end its transaction, or"
	if l.Worker() && l.Torn() {
		next = "a standby worker ends that session, or you do"
	}
	if sql = l.SQL(); sql == "" {
		return next + ": " + l.Fix(), ""
	}
	return next, sql
}

// doingSQL returns since when the server has waited for the client in the middle of a command, and since when
// it has worked on one, both in microseconds. It also returns whether that is a COMMIT which waits for a
// standby, and from which role the server hides that. If a session has no backend_type, the role may not see
// it: its wait_event is NULL then, as for a session that waits for nothing.
const doingSQL = `CASE WHEN a.state = 'active' AND a.wait_event_type = 'Client'
		THEN (extract(epoch FROM clock_timestamp() - a.state_change) * 1000000)::bigint
	END,
	CASE WHEN a.state = 'active' AND a.wait_event_type IS DISTINCT FROM 'Client'
		THEN (extract(epoch FROM clock_timestamp() - a.state_change) * 1000000)::bigint
	END,
	coalesce(a.wait_event = 'SyncRep', false)::int,
	CASE WHEN a.pid IS NOT NULL AND a.backend_type IS NULL AND current_setting('synchronous_standby_names') <> '' THEN current_user::text ELSE '' END,
	CASE WHEN a.pid IS NOT NULL AND a.backend_type IS NULL THEN current_user::text ELSE '' END,
	(p.gid IS NOT NULL AND current_setting('synchronous_standby_names') <> '')::int`

// lockersSQL finds which transaction has locked which row. A row's xmax is the transaction that locked it, and
// a transaction holds the lock of its own id while it is open. The query reads the whole table, which is small,
// and waits for no other session. xact_start is hidden from roles without pg_read_all_stats.
const lockersSQL = `/* cursor.lockers */
SELECT
	c.process_name,
	coalesce(l.pid, 0),
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	` + doingSQL + `,
	l.virtualtransaction,
	(extract(epoch FROM clock_timestamp() - c.updated_at) * 1000000)::bigint,
	0,
	0,
	CASE
		WHEN a.query LIKE '` + pingSaid + `%' THEN substring(a.query FROM '[0-9]{1,18}$')::bigint
		WHEN starts_with(a.application_name, '` + ApplicationTx + `') AND a.state = 'idle in transaction'
		THEN (extract(epoch FROM clock_timestamp() - a.state_change) * 1000000)::bigint
	END
FROM {schema}.cursor c
JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = c.xmax
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
WHERE l.mode = 'ExclusiveLock' AND ($1::text IS NULL OR c.process_name = $1)
ORDER BY c.process_name, l.pid
LIMIT 10000`

// Lockers returns the transactions that hold the lock of a row at this moment, by process. It does not find
// several sessions that share one lock: see Strangers.
func (s *Store) Lockers(ctx context.Context) ([]Locker, error) {
	all, err := s.lockers(ctx, s.lockersOf(tables.Null))
	return all, s.NameExcluder(ctx, err, "cursor")
}

// lockersOf returns the statement for the lockers of one process, or of all (null).
func (s *Store) lockersOf(process string) tables.Statement {
	return s.db.Statement(lockersSQL, process)
}

func (s *Store) lockers(ctx context.Context, which tables.Statement) ([]Locker, error) {
	results, err := s.db.Once(ctx, s.db.Timeout, tables.BeginRead, which)
	var all []Locker
	if err == nil {
		all, err = parseLockers(results[0])
	}
	if err != nil {
		return nil, s.db.WithFix("find who has locked the cursors", err)
	}
	return all, nil
}

func parseLockers(result *pgconn.Result) ([]Locker, error) {
	var all []Locker
	for _, values := range result.Rows {
		p := tables.Parser{Values: values}
		all = append(all, Locker{Process: p.Text(0), PID: int(p.Int(1)), GID: p.Text(2),
			Application: p.Text(3), User: p.Text(4), Since: p.Time(5), Age: p.Duration(6),
			Unfinished: p.Duration(7), Running: p.Duration(8), Replicating: p.Int(9) == 1,
			HiddenFrom: p.Text(10), TimesHiddenFrom: p.Text(11), MayBeCommitted: p.Int(12) == 1, Transaction: p.Text(13),
			Unchanged: p.Duration(14), Certain: p.Int(15) == 1, Queued: p.Int(16) == 1, Call: p.Duration(17)})
		if p.Err != nil {
			return nil, p.Err
		}
	}
	return all, nil
}

// tableLockersSQL finds the transactions that have a lock of one of the tables, in one of the modes $2, or, if
// $3, wait for it. A query for the oids of the tables follows.
const tableLockersSQL = `/* cursor.table_lockers */
SELECT
	'',
	coalesce(l.pid, 0),
	coalesce(p.gid, ''),
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	(extract(epoch FROM coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint,
	` + doingSQL + `,
	l.virtualtransaction,
	0,
	(l.mode IN ('ExclusiveLock', 'AccessExclusiveLock'))::int,
	(NOT l.granted)::int,
	0
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN (
	pg_prepared_xacts p
	JOIN pg_locks x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction
) ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
WHERE (l.granted OR $3::boolean)
	AND l.locktype = 'relation'
	AND l.mode = ANY ($2::text[])
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.relation IN (`

// strangersSQL finds the lockers of one of our tables. Those that lock the whole table come first.
const strangersSQL = tableLockersSQL + `SELECT ('{schema}.' || $1)::regclass)
ORDER BY 16 DESC, 6 NULLS LAST, 2
LIMIT 100`

// These are modes of table locks. A lock of one of the table's rows waits for some, and a transaction takes
// others when it locks a row. VACUUM, ANALYZE and CREATE INDEX CONCURRENTLY take other modes, which are in
// nothing's way.
const (
	rowLocking = "RowShareLock,RowExclusiveLock,ExclusiveLock,AccessExclusiveLock"
	rowWriting = rowLocking + ",ShareLock,ShareRowExclusiveLock" // what an UPDATE waits for, too
	allLocking = "AccessExclusiveLock"
)

// Strangers returns the transactions other than workers and operators that may have locked rows of the cursor
// table, oldest first. Lockers does not find them: for example several that share a row (FOR SHARE), or one
// that locked it within a savepoint.
func (s *Store) Strangers(ctx context.Context) ([]Locker, error) {
	return s.strangers(ctx, "cursor", rowLocking)
}

func (s *Store) strangers(ctx context.Context, table, modes string) ([]Locker, error) {
	all, err := s.lockers(ctx, s.db.Statement(strangersSQL, table, "{"+modes+"}", "false"))
	return slices.DeleteFunc(all, Locker.Worker), err
}

// LetterLocked returns an ErrLocked for the row of a dead letter, which was not free in time, and names the
// transaction that may have it. waited describes how long it was waited for, and may wrap an error.
func (s *Store) LetterLocked(ctx context.Context, waited error) error {
	err := fmt.Errorf("%w, and was not free %w", errLetterLocked, waited)
	return s.nameStrangers(ctx, "dead_letter", rowWriting, err, ": a worker or an operator is at it; wait longer")
}

// errLetterLocked is ErrLocked for the row of a dead letter.
var errLetterLocked = &lockedError{"the dead letter's row is locked"}

type lockedError struct{ text string }

func (e *lockedError) Error() string { return e.text }
func (e *lockedError) Unwrap() error { return ErrLocked }

// nameStrangers adds to ErrLocked which stranger it may be, or, if there is none, the text otherwise.
func (s *Store) nameStrangers(ctx context.Context, table, modes string, err error, otherwise string) error {
	strangers, lookErr := s.strangers(ctx, table, modes)
	switch {
	case lookErr != nil:
		return fmt.Errorf("%w; who it is could not be found: %w", err, lookErr)
	case len(strangers) == 0:
		return fmt.Errorf("%w%s", err, otherwise)
	}
	return fmt.Errorf("%w: %s %s; %s", err, strangers[0], strangers[0].Locks(), strangers[0].Advice())
}

// nameLockers adds to ErrLocked which transaction has the lock.
func (s *Store) nameLockers(ctx context.Context, process string, err error) error {
	lockers, lookErr := s.Lockers(ctx)
	var excluded *ExcludedError
	if errors.As(lookErr, &excluded) {
		return &ExcludedError{Holder: excluded.Holder, Err: err}
	}
	if lookErr != nil {
		return fmt.Errorf("%w; who it is could not be found: %w", err, lookErr)
	}
	for _, l := range lockers {
		switch {
		case l.Process != process:
		case !l.Worker() || l.Torn() || l.Replicating || l.HiddenFrom != "":
			return fmt.Errorf("%w: it is held by %s; %s", err, l, l.Advice())
		case l.Operator():
			return fmt.Errorf("%w: %s is an operator at work; wait longer", err, l)
		default:
			return fmt.Errorf("%w: %s is delivering; wait longer, or for its call to end", err, l)
		}
	}
	return s.nameStrangers(ctx, "cursor", rowLocking, err, "; it is free by now: try again")
}
