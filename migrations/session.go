package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// session is the session that migrates. It holds the lock of migrations.
type session struct {
	config Config
	conn   *pgx.Conn
}

// closeTimeout bounds the closing of a connection to a server that may be gone.
const closeTimeout = 5 * time.Second

// migrate calls f with a session that holds the lock. It calls f again if a table that f needs is in use. It takes
// the lock before it looks at anything, and the lock ends with the session.
func migrate(ctx context.Context, config Config, f func(session) error) error {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return err
	}
	connConfig, err := config.connConfig()
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, connConfig)
	if err != nil {
		return config.unconnected(ctx, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = conn.Close(ctx) // everything that matters is committed
	}()
	if err := config.prepare(ctx, conn); err != nil {
		return config.unconnected(ctx, err)
	}
	return config.untilFree(ctx, conn, func() error { return f(session{config, conn}) })
}

const sessionSQL = `/* migrations.session */
SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('search_path')`

// lockSQL waits, up to waits.lock, until no other session migrates this schema.
const lockSQL = `/* migrations.lock */
SELECT pg_catalog.pg_advisory_lock(pg_catalog.hashtextextended($1, 0))`

const schemaSQL = `/* migrations.schema */
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) $1)`

// prepare checks that the session is the server's own, locks, makes the schema, and checks that trusted roles own it.
// It makes the schema only if it is missing, since IF NOT EXISTS needs the right to create it in any case.
func (c Config) prepare(ctx context.Context, conn *pgx.Conn) error {
	for _, step := range []struct {
		doing  string
		within time.Duration
		do     func(context.Context, *pgx.Conn) error
	}{
		{"ask for the session", c.waits.answer, c.ownSession},
		{"wait for the lock of migrations", c.waits.lock + lockMargin, c.lock},
		{"look for the schema, or make it", c.waits.answer, c.makeSchema},
		{"look for what other roles have there", c.waits.lock + lockMargin, c.claim},
		{"bound the wait for a table", c.waits.answer, func(ctx context.Context, conn *pgx.Conn) error {
			return lockTimeout(ctx, conn, queueTime)
		}},
	} {
		err := answer.Within(ctx, step.within, func(ctx context.Context) error { return step.do(ctx, conn) })
		if err != nil {
			return fmt.Errorf("%s: %w", step.doing, err)
		}
	}
	return nil
}

func (c Config) ownSession(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	var path string
	if err := conn.QueryRow(ctx, sessionSQL).Scan(&pid, &path); err != nil {
		return err
	}
	if pid != conn.PgConn().PID() || path != searchPath(c.Schema) {
		return ErrPooler
	}
	return lockTimeout(ctx, conn, c.waits.lock)
}

func lockTimeout(ctx context.Context, conn *pgx.Conn, timeout time.Duration) error {
	_, err := conn.Exec(ctx, fmt.Sprintf("/* migrations.lock_timeout */ SET lock_timeout = %d", timeout.Milliseconds()))
	return err
}

func (c Config) makeSchema(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, schemaSQL, c.Schema).Scan(&exists); err != nil || exists {
		return err
	}
	if _, err := conn.Exec(ctx, "/* migrations.create_schema */ CREATE SCHEMA "+pgx.Identifier{c.Schema}.Sanitize()); err != nil {
		return fmt.Errorf("create schema %q: %w", c.Schema, err)
	}
	return nil
}

// lock takes the lock of migrations. The server ends the wait, and lock then asks it which session has the lock.
func (c Config) lock(ctx context.Context, conn *pgx.Conn) error {
	name := "ordered-dispatcher migrate " + c.Schema
	_, err := conn.Exec(ctx, lockSQL, name)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != lockNotAvailable {
		return err
	}
	holder := "a session that is gone"
	_ = conn.QueryRow(ctx, holderSQL, name).Scan(&holder) // no row: it is free by now
	return fmt.Errorf("%w: not free within %v, held by %s: %w", answer.ErrNone, c.waits.lock, visible.Inline(holder), err)
}

// holderSQL names the session that holds the lock of migrations. PostgreSQL keeps a key of 64 bits in two columns.
const holderSQL = `/* migrations.holder */
SELECT pg_catalog.format('pid %s (application %s, user %s)',
	l.pid,
	coalesce(pg_catalog.quote_literal(a.application_name), 'unknown'),
	coalesce(a.usename::pg_catalog.text, 'unknown'))
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid
WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
	AND l.granted
	AND l.objsubid OPERATOR(pg_catalog.=) 1
	AND l.database OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
	AND (l.classid::bigint OPERATOR(pg_catalog.<<) 32) OPERATOR(pg_catalog.|) l.objid::bigint OPERATOR(pg_catalog.=) pg_catalog.hashtextextended($1, 0)
LIMIT 1`

// unconnected puts an error of connecting into one line, and names the deadline if there was no connection in time. pgx
// has one deadline for each address of a host name.
func (c Config) unconnected(ctx context.Context, err error) error {
	var timed interface{ Timeout() bool }
	err = answer.OneLine(err)
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
	if !late || ctx.Err() != nil || errors.Is(err, answer.ErrNone) {
		return err
	}
	return fmt.Errorf("%w: no connection to the database: %w", answer.ErrNone, err)
}
