package table

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Lag is what stands behind a position, delivered or not.
type Lag struct {
	// Records behind the position, counted up to MaxLagRecords.
	Records int64
	// Age of the oldest of them, by the database's clock; zero without records
	// if it is not Aged.
	Age time.Duration
	// Ahead is how far the oldest of them is stamped ahead of the database's clock, which
	// it waits for; zero if it is not, or if the order is not by time. Stamp is its time.
	Ahead time.Duration
	Stamp time.Time
	// Begun: a transaction that began later inserts nothing before the oldest of them. Zero where
	// the order, or what stamps it, does not tell.
	Begun time.Time
	// Aged: the source reads a created_at column.
	Aged bool
}

// Writer is a transaction that the fence waits for.
type Writer struct {
	// PID of its session; 0 for a prepared transaction.
	PID int
	// GID of a prepared transaction, else "".
	GID string
	// Transaction is its virtual id, which every role may see: it tells one from the next of its
	// session. "" where the fence waits for sessions, of which Since is seen.
	Transaction string
	// Application is the session's application_name, User its role.
	Application, User string
	// Since is when the transaction began, or was prepared; zero when the role
	// may not see it.
	Since time.Time
	// State of the session, as pg_stat_activity has it: "active", "idle in
	// transaction" …; "" for a prepared transaction, and when the role may not see it.
	State string
	// Command is what kind of statement it runs, or ran last: "DELETE", "INSERT" …, as its text
	// begins. "" when that is not known.
	Command string
	// Replicating: its COMMIT is done here and waits for a synchronous standby.
	Replicating bool
	// HiddenFrom is the role that asks, if the server has synchronous standbys and hides from
	// that role what the session waits for: it may be as Replicating says. Else "".
	HiddenFrom string
	// TimesHiddenFrom is the role that asks, if the server hides from that role since when the
	// transaction goes on, so that Since is zero. Else "".
	TimesHiddenFrom string
	// MayBeCommitted: it is prepared, and the server has synchronous standbys. Its COMMIT PREPARED
	// may be done and wait for one.
	MayBeCommitted bool
	// Ours: a session of a dispatcher, by its name, that writes nothing but a cursor.
	// Only the fence of a worker of another role waits for it.
	Ours bool
}

// MaxLagRecords bounds the count of Lag, which reads that many index entries.
const MaxLagRecords = 100_000

// maxAge is what a time.Duration holds.
const maxAge = time.Duration(math.MaxInt64)

const lagSQL = `/* source.lag */
SELECT count(*), %s, min(at)
FROM (
	SELECT %s AS at
	FROM %s AS t
	WHERE %s
	ORDER BY %s
	LIMIT %d
) waiting`

// Lag counts what stands behind a position, by index range.
func (s *Source) Lag(ctx context.Context, after cursor.Position) (Lag, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return Lag{}, err
	}
	age, at := "0::bigint", "1"
	if l.at != "" {
		age, at = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint - min(at)", l.finiteMicros()
	}
	args, err := l.startAfter(after)
	if err != nil {
		return Lag{}, err
	}
	sql := fmt.Sprintf(lagSQL, age, at, l.sql(), l.behind(s.config, after == ""), strings.Join(l.orderBy(s.config), ", "), MaxLagRecords)
	lag := Lag{Aged: l.at != ""}
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		result := tx.Conn().PgConn().ExecParams(ctx, sql, args, nil, nil, nil).Read()
		if result.Err != nil {
			return result.Err
		}
		if lag.Records, err = strconv.ParseInt(string(result.Rows[0][0]), 10, 64); err != nil {
			return err
		}
		age, _ := strconv.ParseInt(string(result.Rows[0][1]), 10, 64)    // NULL without records
		at, atErr := strconv.ParseInt(string(result.Rows[0][2]), 10, 64) // NULL without a finite one
		if age < 0 && l.ordersByTime() {
			lag.Ahead = time.Duration(min(-age, maxAge.Microseconds())) * time.Microsecond
			lag.Stamp = time.UnixMicro(at).UTC()
		}
		if atErr == nil && l.ordersByTime() && l.stamp != stampElsewhere {
			lag.Begun = time.UnixMicro(at).Add(l.slack(s.config)).UTC() // within the latency, stamps may be older than they should
		}
		lag.Age = time.Duration(min(max(0, age), maxAge.Microseconds())) * time.Microsecond
		return nil
	})
	if err != nil {
		s.distrust(err)
		return Lag{}, fmt.Errorf("count the lag of %s: %w", l.name(), lasting(err))
	}
	return lag, nil
}

// commandSQL is the first word of a session's statement, if it is one of those that write or may. No more of
// the text is asked for: it may hold what records do.
const commandSQL = `coalesce(upper(substring(a.query FROM '(?i)^\s*(INSERT|UPDATE|DELETE|MERGE|COPY|TRUNCATE|SELECT|WITH|CALL|DO|EXECUTE|FETCH|LOCK|SAVEPOINT)\M')), '')`

// holdersSQL names the sessions behind the transactions that statement 2 of the
// fence finds. xact_start, and what a session waits for, are hidden from roles without
// pg_read_all_stats: a session without a backend_type is one that the role may not see.
const holdersSQL = `
SELECT DISTINCT
	coalesce(l.pid, 0),
	coalesce(p.gid, ''),
	l.virtualtransaction,
	coalesce(a.application_name, ''),
	coalesce(a.usename::text, p.owner::text, ''),
	coalesce(a.xact_start, p.prepared),
	coalesce(a.state, ''),
	` + commandSQL + `,
	coalesce(a.wait_event = 'SyncRep', false),
	CASE WHEN a.pid IS NOT NULL AND a.backend_type IS NULL AND current_setting('synchronous_standby_names') <> '' THEN current_user::text ELSE '' END,
	CASE WHEN a.pid IS NOT NULL AND a.backend_type IS NULL THEN current_user::text ELSE '' END,
	p.gid IS NOT NULL AND current_setting('synchronous_standby_names') <> '',
	false
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN (
	pg_prepared_xacts p
	JOIN pg_locks x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction
) ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
WHERE l.granted
	AND l.pid IS DISTINCT FROM pg_backend_pid()
	AND l.locktype = 'relation'
	AND l.mode = 'RowExclusiveLock'
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.relation IN (SELECT oid FROM lineage)
ORDER BY 6 NULLS LAST, 1
LIMIT 100`

// startedSQL is the same where the fence waits for sessions. One that is idle is
// not named: it holds the fence for an instant, if at all. Nor is one that the role may not see:
// such a role is not let read.
const startedSQL = `/* source.holders */
SELECT pid, '', '', coalesce(application_name, ''), coalesce(usename::text, ''), ` + earliest + `, coalesce(state, ''), ` + commandSQL + `, coalesce(wait_event = 'SyncRep', false), '', '', false, coalesce(` + ours + `, false)
FROM pg_stat_activity a
WHERE pid <> pg_backend_pid() AND NOT ` + harmless + ` AND (xact_start IS NOT NULL OR state <> 'idle')
UNION ALL
SELECT 0, gid, '', '', owner::text, prepared, '', '', false, '', '', current_setting('synchronous_standby_names') <> '', false
FROM pg_prepared_xacts
WHERE database = current_database()
ORDER BY 6 NULLS LAST, 1
LIMIT 100`

// Writers returns the transactions that the fence waits for at this moment,
// oldest first, at most 100. Those that begin and end quickly come and go.
func (s *Source) Writers(ctx context.Context) ([]Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("/* source.holders */"+treeSQL+holdersSQL, l.oid)
	if l.stamp == stampAtStart {
		sql = startedSQL
	}
	var writers []Writer
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		writers, err = collectWriters(ctx, tx, sql)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the writers of %s: %w", l.name(), err)
	}
	return writers, nil
}

// collectWriters reads what holdersSQL or startedSQL finds.
func collectWriters(ctx context.Context, tx pgx.Tx, sql string) ([]Writer, error) {
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Writer, err error) {
		var since *time.Time
		err = row.Scan(&w.PID, &w.GID, &w.Transaction, &w.Application, &w.User, &since, &w.State, &w.Command, &w.Replicating, &w.HiddenFrom, &w.TimesHiddenFrom, &w.MayBeCommitted, &w.Ours)
		if since != nil {
			w.Since = *since
		}
		return w, err
	})
}
