package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// status finds a worker by the application_name and the role of its sessions, which every role may read. The name
// ends in watchMark and the set of processes that the worker runs. The audit has the processes of each set. A session
// ends with its worker, so this is never out of date. Nothing is written while the worker and its server run.
const (
	watchMark = "run/"
	setLength = 12
	unseen    = "unseen" // the set of a worker that connects through a pooler
	// maxApplication is how many bytes of an application_name PostgreSQL keeps.
	maxApplication = 63
)

// set names the processes of a file. It is the same for all workers of that file.
func (c Config) set() string {
	names := slices.Sorted(slices.Values(c.Names()))
	sum := sha256.Sum256([]byte(c.schema() + "\x00" + strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:])[:setLength]
}

// watching returns the application_name of a worker's sessions.
func (c Config) watching(application string) string {
	mark := " " + watchMark + c.set()
	return application[:min(len(application), maxApplication-len(mark))] + mark
}

// watchSQL notes once that workers of a set, and of a role, run a process. The server fills in the role.
const watchSQL = `/* daemon.watch */
INSERT INTO {schema}.cursor_event (process_name, actor, action, detail)
SELECT $1, $2, 'watch', pg_catalog.jsonb_build_object('set', $3::pg_catalog.text)
WHERE NOT EXISTS (
	SELECT 1
	FROM {schema}.cursor_event
	WHERE process_name OPERATOR(pg_catalog.=) $1
		AND action OPERATOR(pg_catalog.=) 'watch'
		AND (detail OPERATOR(pg_catalog.->>) 'set') OPERATOR(pg_catalog.=) $3
		AND db_user OPERATOR(pg_catalog.=) session_user::pg_catalog.text
)`

// errFormerUser means that a connection had the former login. It was closed.
var errFormerUser = errors.New("the connection still has the former user")

// noteWatched makes status know which processes this worker runs, through a connection of a user; "" is any user.
func (c Config) noteWatched(ctx context.Context, pool *pgxpool.Pool, p Process, worker, user string) error {
	err := onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		if user != "" && conn.Conn().Config().User != user {
			return errors.Join(errFormerUser, conn.Conn().Close(ctx))
		}
		set := c.set()
		pooled, err := pooled(ctx, conn)
		if err != nil {
			return err
		}
		if pooled {
			set = unseen
		}
		_, err = conn.Exec(ctx, c.sql(watchSQL), p.Name, worker, set)
		return err
	})
	if err != nil {
		return fmt.Errorf("note that process %q is run: %w", p.Name, err)
	}
	return nil
}

// serverRun identifies the run of the server.
func (c Config) serverRun(ctx context.Context, pool *pgxpool.Pool) (run string, err error) {
	err = onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "/* daemon.server_run */ SELECT "+prepared.RunSQL).Scan(&run)
	})
	return run, err
}

// pooled reports whether the connection goes through a pooler, which greets with a process id of its own. Several
// clients share a pooler's sessions, and the name of a session is the name of its last client.
func pooled(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
	var pid uint32
	if err := conn.QueryRow(ctx, backendSQL).Scan(&pid); err != nil {
		return false, fmt.Errorf("ask for the session's process: %w", err)
	}
	return pid != conn.Conn().PgConn().PID(), nil
}

// watchedSQL finds the processes that some worker announced, and whether one of their workers has a session now.
// While a session of a worker asks for a lease, or holds it, its name shows that instead. Every role may choose any
// name, so a session counts only if its role announced the process. The statement reads the partial index on the
// announcements. It looks each one up in a hash of the sessions: with an OR in a join it would compare all pairs.
const watchedSQL = `/* daemon.watched */
WITH session AS (
	SELECT
		a.usename::text AS role,
		names.name
	FROM pg_stat_activity a
	CROSS JOIN LATERAL (VALUES (a.application_name), (right(a.application_name, $1::int))) names (name)
	WHERE a.datname = current_database() AND a.usename IS NOT NULL
)
SELECT
	process_name,
	bool_or(live),
	array_agg(DISTINCT role) FILTER (WHERE live)
FROM (
	SELECT
		e.process_name,
		e.db_user AS role,
		e.detail->>'set' AS set,
		coalesce(
			(e.db_user, '` + watchMark + `' || (e.detail->>'set')) IN (SELECT role, name FROM session)
			OR (e.db_user, left('` + cursor.ApplicationLease + `' || e.process_name, 63)) IN (SELECT role, name FROM session)
			OR (e.db_user, left('` + cursor.ApplicationTx + `' || e.process_name, 63)) IN (SELECT role, name FROM session),
			false) AS live
	FROM {schema}.cursor_event e
	WHERE e.action = 'watch'
) announced
GROUP BY process_name
HAVING NOT bool_or(set = '` + unseen + `')
ORDER BY process_name
LIMIT 10000`

// presence records for processes whether a worker watches them. A process is missing if a daemon never ran it, or if
// one ran it once through a pooler: such a worker is not seen while it is idle.
type presence map[string]watchers

// watchers are the live workers of a process, by the roles of their sessions.
type watchers struct {
	live  bool
	roles []string
}

func (c Config) presence(ctx context.Context, pool *pgxpool.Pool) (presence, error) {
	seen := presence{}
	var process string
	var w watchers
	err := ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, c.sql(watchedSQL), len(watchMark)+setLength)
		_, err := pgx.ForEachRow(rows, []any{&process, &w.live, &w.roles}, func() error {
			seen[process] = w
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for the workers: %w", err)
	}
	return seen, nil
}

// absent reports whether it is known that no worker runs a process.
func (p presence) absent(process string) bool {
	w, known := p[process]
	return known && !w.live
}
