package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// capacitySQL asks for the limits on connections, and for the number that others use of each. The limits of a role
// and of a database do not hold for a superuser. A role that may not see the kind of other sessions counts those with
// a user and a database; a few of them may not be clients.
const capacitySQL = `/* daemon.capacity */
WITH other AS (
	SELECT usename, datname
	FROM pg_catalog.pg_stat_activity
	WHERE coalesce(backend_type, 'client backend') = 'client backend' AND usename IS NOT NULL AND datname IS NOT NULL AND pid <> pg_backend_pid()
), me AS (
	SELECT rolname, rolconnlimit, rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user
)
SELECT
	current_setting('max_connections')::int
		- current_setting('superuser_reserved_connections')::int
		- coalesce(current_setting('reserved_connections', true)::int, 0),
	(SELECT count(*) FROM other)::int,
	CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END,
	(SELECT count(*) FROM other WHERE usename = rolname)::int,
	CASE WHEN rolsuper THEN -1 ELSE (SELECT datconnlimit FROM pg_catalog.pg_database WHERE datname = current_database()) END,
	(SELECT count(*) FROM other WHERE datname = current_database())::int,
	rolname::text,
	current_database()::text
FROM me`

// limit is one of the limits on connections.
type limit struct {
	name    string // as in "… is 97"
	allowed int32
	used    int32  // by others
	alter   string // SQL, up to the number; "": the limit is the server's
}

// capacity returns the limits that hold for a session. The limits that only the owner of the server can change come
// last.
func (c Config) capacity(ctx context.Context, pool *pgxpool.Pool) ([]limit, error) {
	const reserved = "max_connections, less what is reserved (superuser_reserved_connections, reserved_connections),"
	server := limit{name: reserved}
	var ofRole, ofDatabase limit
	var role, database string
	err := ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, capacitySQL).Scan(&server.allowed, &server.used,
			&ofRole.allowed, &ofRole.used, &ofDatabase.allowed, &ofDatabase.used, &role, &database)
	})
	if err != nil {
		return nil, fmt.Errorf("look up the limits on connections: %w", err)
	}
	own := pool.Stat().TotalConns() - 1 // all but the one that asked
	for _, l := range []*limit{&server, &ofRole, &ofDatabase} {
		l.used = max(0, l.used-own)
	}
	ofRole.name, ofRole.alter = "the CONNECTION LIMIT of role "+quoted(role), fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT ", quoted(role))
	ofDatabase.name, ofDatabase.alter = "the CONNECTION LIMIT of database "+quoted(database), fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT ", quoted(database))
	var limits []limit
	for _, l := range []limit{ofRole, ofDatabase} {
		if l.allowed >= 0 {
			limits = append(limits, l)
		}
	}
	return append(limits, server), nil
}

// lacks returns how many connections are missing for so many more, given those that others use.
func (l limit) lacks(need int32) int32 { return need - (l.allowed - l.used) }

// repair returns the fix for a limit that has no room for so many.
func (l limit) repair(need int32) string {
	if l.alter == "" {
		return fmt.Sprintf("raise max_connections by at least %d, or use a pooler", l.lacks(need))
	}
	return fmt.Sprintf("%s%d, times the number of workers", l.alter, need)
}

// connections returns how many connections a worker of the file opens to the server at most: those of the pool, and
// one for each sql sink that delivers to the same server.
func (c Config) connections(pool *pgxpool.Pool) int32 {
	config := pool.Config()
	n := config.MaxConns
	for _, p := range c.Processes {
		sink, is := p.Sink.Config.(sinks.Posted)
		if !is || sink.DatabaseURL() == "" {
			continue
		}
		target, err := pgurl.ParseAlone(sink.DatabaseURL())
		if err == nil && target.Host == config.ConnConfig.Host && target.Port == config.ConnConfig.Port {
			n++
		}
	}
	return n
}

// ConsoleConns is how many connections the console opens at most: those of its desk, and one of its doctor.
const ConsoleConns = 10

// consoleConns returns how many connections the console of a worker opens at most. A file in which no one can log in
// has none: it may be looked at on the machine itself, but that is not what the server is sized for.
func (c Config) consoleConns() int32 {
	if !c.Admin.Logins() {
		return 0
	}
	return ConsoleConns
}

// needs describes how many connections a worker opens.
func (c Config) needs(pool *pgxpool.Pool) string {
	return fmt.Sprintf("this worker opens up to %d connections (2 for each of %d processes and 2 more, 1 for listen_token, 1 for notify, or pool_max_conns; and 1 for each sql sink with a url on this server)",
		c.connections(pool), len(c.Processes))
}

// ErrNoRoom means that the server has fewer connections left than a worker may need.
var ErrNoRoom = errors.New("the server does not have enough connections")

// fits returns an error if the server has no room for the connections of this worker: a *UsageError if it can never
// have it, and ErrNoRoom if other sessions use too many now. It returns nil if the server cannot be asked, or if the
// worker connects through a pooler.
func (c Config) fits(ctx context.Context, pool *pgxpool.Pool) error {
	const formula = "; the connections of all workers and of other clients must fit: see Connections in docs/operations.md"
	var pgErr *pgconn.PgError
	behind := false
	err := onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		behind, err = pooled(ctx, conn)
		return err
	})
	if errors.As(err, &pgErr) && strings.HasPrefix(pgErr.Code, "53") {
		return fmt.Errorf("%w: it refuses new ones now (%w), and %s%s", ErrNoRoom, err, c.needs(pool), formula)
	}
	if err != nil || behind {
		return nil
	}
	limits, err := c.capacity(ctx, pool)
	if err != nil {
		return nil
	}
	need := c.connections(pool)
	for _, l := range limits {
		if l.allowed < need {
			return usage("%w: %s, and %s is %d: %s, or run fewer processes in one worker%s", ErrNoRoom, c.needs(pool), l.name, l.allowed, l.repair(need), formula)
		}
	}
	for _, l := range limits {
		if l.lacks(need) > 0 {
			return fmt.Errorf("%w: %s, and %s is %d, of which others use %d: %s, or run fewer workers%s",
				ErrNoRoom, c.needs(pool), l.name, l.allowed, l.used, l.repair(need), formula)
		}
	}
	return nil
}

const (
	// connectionsPatience is how long a worker waits for connections that others use. The connections of a worker that it
	// replaces end after seconds.
	connectionsPatience = 10 * time.Second
	roomInterval        = time.Second
)

// awaitConnections waits for patience at most, and then returns why the server has no room for this worker.
func (c *crew) awaitConnections(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		err := c.config.fits(c.ctx, c.pool)
		if c.ctx.Err() != nil || err == nil {
			return nil
		}
		if errors.As(err, new(*UsageError)) || !time.Now().Before(deadline) {
			return err
		}
		pause(c.ctx, min(roomInterval, time.Until(deadline)))
	}
}
