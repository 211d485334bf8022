package migrations

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// migrate calls f with a provider on one session that holds the lock.
func migrate(ctx context.Context, config Config, f func(*goose.Provider) error) error {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return err
	}
	db, err := open(config)
	if err != nil {
		return err
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return f(provider)
}

// open returns a database that has one session at most. It is made ready when
// it connects, so the lock is held before anything is looked at, and ends with
// Close. (A lock of goose's would come later than the schema, and would leave a
// table behind or poll.)
func open(config Config) (*sql.DB, error) {
	connConfig, err := config.connConfig()
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*connConfig, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		return prepare(ctx, conn, config.Schema)
	}))
	db.SetMaxOpenConns(1)
	return db, nil
}

const sessionSQL = `/* migrations.session */
SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('search_path')`

// lockSQL waits, up to lockTimeout, until no other session migrates this schema.
const lockSQL = `/* migrations.lock */
SELECT pg_catalog.pg_advisory_lock(pg_catalog.hashtextextended($1, 0))`

const schemaSQL = `/* migrations.schema */
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) $1)`

// prepare checks that the session is the server's own, locks, and makes the
// schema: only if it is missing, since IF NOT EXISTS asks for the right to
// create it either way.
func prepare(ctx context.Context, conn *pgx.Conn, schema string) error {
	var pid uint32
	var path string
	if err := conn.QueryRow(ctx, sessionSQL).Scan(&pid, &path); err != nil {
		return err
	}
	if pid != conn.PgConn().PID() || path != searchPath(schema) {
		return ErrPooler
	}
	if _, err := conn.Exec(ctx, "/* migrations.lock_timeout */ SET lock_timeout = '"+lockTimeout+"'"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, lockSQL, "ordered-dispatcher migrate "+schema); err != nil {
		return fmt.Errorf("wait for the lock of migrations: %w", err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, schemaSQL, schema).Scan(&exists); err != nil || exists {
		return err
	}
	if _, err := conn.Exec(ctx, "/* migrations.create_schema */ CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return fmt.Errorf("create schema %q: %w", schema, err)
	}
	return nil
}
