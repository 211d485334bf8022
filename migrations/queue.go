package migrations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/ending"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	// queueTime is how long a migration waits for a table at a time. Meanwhile every worker, and everyone who asks
	// for a status, waits for the migration.
	queueTime = 100 * time.Millisecond
	// queuePause is how long, on average, the workers then have the tables to themselves.
	queuePause = 500 * time.Millisecond
)

// untilFree calls try again, with pauses, as long as others use the tables that it needs, for waits.lock at most. A
// migration that waits for a table without an end would keep every process from its cursor while a receiver is slow
// with one record.
func (c Config) untilFree(ctx context.Context, conn *pgx.Conn, try func() error) error {
	deadline := time.Now().Add(c.waits.lock)
	var named []string
	for {
		err := try()
		if !waitedForLock(err) {
			return err
		}
		sessions := c.sessions(ctx, conn)
		for _, session := range sessions {
			if c.Waiting != nil && !slices.Contains(named, session.name) {
				c.Waiting(session.name)
			}
			named = append(named, session.name)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: the tables are in use, and were not free within %v; a table is, or was, held by %s: %w",
				answer.ErrNone, c.waits.lock, held(sessions), err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(queuePause/2 + rand.N(queuePause)): //nolint:gosec // no secret
		}
	}
}

func waitedForLock(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == lockNotAvailable
}

// sessionsSQL names the sessions that use one of the tables, the oldest transactions first. It marks the ones that an
// operator may end: not the dispatcher's own, which deliver, and not one that may be a COMMIT that waits for a
// synchronous standby.
const sessionsSQL = `/* migrations.sessions */
SELECT DISTINCT
	a.xact_start,
	CASE
		WHEN l.pid IS NULL THEN coalesce('the prepared transaction ' OPERATOR(pg_catalog.||) pg_catalog.quote_literal(p.gid), 'a prepared transaction')
		ELSE pg_catalog.format('pid %s (application %s, user %s)',
			l.pid,
			coalesce(pg_catalog.quote_literal(a.application_name), 'unknown'),
			coalesce(a.usename::pg_catalog.text, 'unknown'))
	END OPERATOR(pg_catalog.||) CASE
		WHEN a.wait_event OPERATOR(pg_catalog.=) 'SyncRep' THEN ', whose COMMIT waits for a synchronous standby'
		WHEN pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.=) '' THEN ''
		WHEN l.pid IS NULL THEN ', whose COMMIT PREPARED may wait for a synchronous standby'
		WHEN a.backend_type IS NULL THEN ', which may be a COMMIT that waits for a synchronous standby'
		ELSE ''
	END,
	coalesce(l.pid, 0),
	l.virtualtransaction,
	a.pid IS NOT NULL
		AND NOT pg_catalog.starts_with(a.application_name, 'ordered-dispatcher ')
		AND a.wait_event IS DISTINCT FROM 'SyncRep'
		AND (a.backend_type IS NOT NULL OR pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.=) '')
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) l.relation
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid
LEFT JOIN (
	pg_catalog.pg_prepared_xacts p
	JOIN pg_catalog.pg_locks x ON x.locktype OPERATOR(pg_catalog.=) 'transactionid' AND x.transactionid OPERATOR(pg_catalog.=) p.transaction
) ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction
WHERE l.granted
	AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
	AND l.database OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
	AND n.nspname OPERATOR(pg_catalog.=) $1
	AND c.relname OPERATOR(pg_catalog.=) ANY (ARRAY['cursor', 'cursor_alarm', 'cursor_amended', 'cursor_event', 'cursor_past', 'cursor_pruned', 'dead_letter', '` + versionTable + `'])
ORDER BY 1 NULLS FIRST, 2
LIMIT 5`

// user is a session that uses one of the tables.
type user struct {
	name string
	end  string // as SQL; "" if the program does not propose to end it
}

// sessions returns the sessions. The result is never empty.
func (c Config) sessions(ctx context.Context, conn *pgx.Conn) []user {
	var sessions []user
	_ = answer.Within(ctx, c.waits.answer, func(ctx context.Context) error {
		rows, err := conn.Query(ctx, sessionsSQL, c.Schema)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var since *time.Time
			var s user
			var t ending.Transaction
			var mayEnd bool
			if err := rows.Scan(&since, &s.name, &t.PID, &t.Virtual, &mayEnd); err != nil {
				return err
			}
			if since != nil {
				t.Since = *since
			}
			if mayEnd {
				s.end = t.SQL()
			}
			s.name = visible.Inline(s.name)
			sessions = append(sessions, s)
		}
		return rows.Err()
	})
	if len(sessions) == 0 {
		return []user{{name: "a session that is gone"}}
	}
	return sessions
}

// held names sessions, with the SQL that ends each.
func held(sessions []user) string {
	var all []string
	for _, s := range sessions {
		if s.end != "" {
			s.name += " (to end it: " + s.end + ")"
		}
		all = append(all, s.name)
	}
	return strings.Join(all, ", ")
}
