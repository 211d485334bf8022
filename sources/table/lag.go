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

// Lag describes the records after a position, delivered or not.
type Lag struct {
	// Records counts the records after the position, up to MaxLagRecords.
	Records int64
	// Age of the oldest of them, by the database's clock. It is zero without records, or if it is not Aged.
	Age time.Duration
	// Ahead is how far the stamp of the oldest record is ahead of the database's clock. The record waits for that
	// clock. It is zero if the stamp is not ahead, or if the order is not by time. Stamp is the time of that record.
	Ahead time.Duration
	Stamp time.Time
	// Begun: a transaction that began later inserts nothing before the oldest record. It is zero where the order, or
	// the way in which rows are stamped, does not allow to know this.
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
	// Transaction is its virtual id, which every role may see. It differs between one transaction of a session and the
	// next. It is "" where the fence waits for sessions; those show Since.
	Transaction string
	// Application is the session's application_name, User its role.
	Application, User string
	// Since is when the transaction began, or was prepared; zero if the role may not see it.
	Since time.Time
	// QueryStart is when the statement that it runs began, or the last one; zero if the role may not see it.
	QueryStart time.Time
	// State of the session as in pg_stat_activity: "active", "idle in transaction" …; "" for a prepared transaction,
	// and if the role may not see it.
	State string
	// Command is the kind of statement that it runs, or ran last: "DELETE", "INSERT" …, as the text begins. "" if that
	// is not known.
	Command string
	// Replicating: its COMMIT is done on this server and waits for a synchronous standby.
	Replicating bool
	// HiddenFrom is the role that asks, if the server has synchronous standbys and does not show that role why the
	// session waits. Then Replicating may be true of it. Else "".
	HiddenFrom string
	// TimesHiddenFrom is the role that asks, if the server does not show that role when the transaction began. Then
	// Since is zero. Else "".
	TimesHiddenFrom string
	// MayBeCommitted: it is prepared, and the server has synchronous standbys. Its COMMIT PREPARED may be done and
	// wait for a standby.
	MayBeCommitted bool
	// Ours: by its name, a session of a dispatcher that writes only a cursor. Only the fence of a worker with another
	// role waits for it.
	Ours bool
}

// MaxLagRecords bounds the count of Lag, which reads as many index entries.
const MaxLagRecords = 100_000

// maxAge is the most that a time.Duration holds.
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

// Lag counts the records after a position, by index range.
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

// commandSQL is the first word of a session's statement, if it is one of the words that write or may write. It asks
// for no more of the text, which may hold values of records.
const commandSQL = `coalesce(upper(substring(a.query FROM '(?i)^\s*(INSERT|UPDATE|DELETE|MERGE|COPY|TRUNCATE|SELECT|WITH|CALL|DO|EXECUTE|FETCH|LOCK|SAVEPOINT)\M')), '')`

// holdersSQL names the sessions of the transactions that statement 2 of the fence finds. The server hides xact_start,
// and what a session waits for, from roles without pg_read_all_stats. A session without a backend_type is one that
// the role may not see.
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
	false,
	a.query_start
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

// startedSQL does the same where the fence waits for sessions. It does not name an idle session, which holds the
// fence for an instant at most. Nor does it name a session that the role may not see: such a role is not allowed to
// read.
const startedSQL = `/* source.holders */
SELECT pid, '', '', coalesce(application_name, ''), coalesce(usename::text, ''), ` + earliest + `, coalesce(state, ''), ` + commandSQL + `, coalesce(wait_event = 'SyncRep', false), '', '', false, coalesce(` + ours + `, false), query_start
FROM pg_stat_activity a
WHERE pid <> pg_backend_pid() AND NOT ` + harmless + ` AND (xact_start IS NOT NULL OR state <> 'idle')
UNION ALL
SELECT 0, gid, '', '', owner::text, prepared, '', '', false, '', '', current_setting('synchronous_standby_names') <> '', false, NULL
FROM pg_prepared_xacts
WHERE database = current_database()
ORDER BY 6 NULLS LAST, 1
LIMIT 100`

// Writers returns the transactions that the fence waits for at this moment, oldest first, at most 100. Transactions
// that begin and end quickly come and go in this list.
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

// collectWriters reads the rows that holdersSQL or startedSQL finds.
func collectWriters(ctx context.Context, tx pgx.Tx, sql string) ([]Writer, error) {
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Writer, err error) {
		var since, query *time.Time
		err = row.Scan(&w.PID, &w.GID, &w.Transaction, &w.Application, &w.User, &since, &w.State, &w.Command, &w.Replicating, &w.HiddenFrom, &w.TimesHiddenFrom, &w.MayBeCommitted, &w.Ours, &query)
		if since != nil {
			w.Since = *since
		}
		if query != nil {
			w.QueryStart = *query
		}
		return w, err
	})
}
