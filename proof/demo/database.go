package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

const (
	schemaPrefix    = "ordered_dispatcher_demo_"
	applicationName = "ordered-dispatcher demo"

	// cleanupTimeout bounds each step of removing what the demo made.
	cleanupTimeout = 30 * time.Second
)

// database is the demo's schema, on a server of its own or of the user's.
type database struct {
	url    string
	schema string
	pool   *pgxpool.Pool
	server *pglocal.Server // nil: the user's
	made   bool            // there may be a schema to drop
}

// openDatabase makes the tables. The caller closes the database.
func openDatabase(ctx context.Context, address string, screen *screen) (*database, error) {
	d := &database{url: address, schema: schemaPrefix + strings.ToLower(rand.Text()[:8])}
	if err := d.open(ctx, screen); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) open(ctx context.Context, screen *screen) (err error) {
	if d.url == "" {
		if err := d.start(ctx, screen); err != nil {
			return err
		}
	} else {
		screen.part("PostgreSQL", "the server of --database")
	}
	if d.pool, err = openPool(ctx, d.url); err != nil {
		return err
	}
	if err := d.pool.Ping(ctx); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w; correct --database, or leave it out to have a throw-away server started", err)
	}
	screen.part("Tables", "bookings and those of the cursor, in schema %s", d.schema)
	if err := d.createTables(ctx); err != nil {
		return fmt.Errorf("create the demo's tables: %w; or leave out --database to have a throw-away server started", err)
	}
	return nil
}

func (d *database) start(ctx context.Context, screen *screen) (err error) {
	screen.part("PostgreSQL", "starting a throw-away server; --database would name another")
	began := time.Now()
	d.server, err = pglocal.Start(ctx, pglocal.Config{Log: slog.New(screenLog{screen})})
	if err != nil {
		return err
	}
	screen.part("", "up on 127.0.0.1:%d after %s", d.server.Port(), short(time.Since(began)))
	d.url = d.server.URL()
	return nil
}

func openPool(ctx context.Context, address string) (*pgxpool.Pool, error) {
	if err := pgurl.CheckScheme(address); err != nil {
		return nil, fmt.Errorf("--database: %w", err)
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		// Its text may hold parts of a password.
		return nil, errors.New("--database cannot be read: write it as postgres://user:password@host/database, " +
			"and percent-encode what is special in the password")
	}
	if err := errors.Join(pgurl.CheckPasswords(address, config.ConnConfig), pgurl.CheckParameters(config.ConnConfig.RuntimeParams)); err != nil {
		return nil, fmt.Errorf("--database: %w", err)
	}
	config.ConnConfig.RuntimeParams = pgurl.Lowered(config.ConnConfig.RuntimeParams)
	config.ConnConfig.RuntimeParams["application_name"] = applicationName
	config.MaxConns = producers + 4 // the unrelated transaction, looks at the cursor, the final read
	return pgxpool.NewWithConfig(ctx, config)
}

// createSQL: created_at is stamped when the row is inserted, behind the table's lock, which is what the dispatcher's
// order rests on; the index is what it reads by.
const createSQL = `/* demo.create */
CREATE TABLE {schema}.bookings (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	customer_id bigint NOT NULL,
	phone       text NOT NULL,
	status      text NOT NULL,
	amount      numeric(10, 2) NOT NULL
);
CREATE INDEX bookings_created_at_id ON {schema}.bookings (created_at, id);
CREATE TABLE {schema}.report (
	line text NOT NULL
);`

func (d *database) createTables(ctx context.Context) error {
	d.made = true
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: d.url, Schema: d.schema}); err != nil {
		return err
	}
	_, err := d.pool.Exec(ctx, d.sql(createSQL), pgx.QueryExecModeSimpleProtocol)
	return err
}

// sql puts the schema into a statement.
func (d *database) sql(text string) string {
	return strings.ReplaceAll(text, "{schema}", pgx.Identifier{d.schema}.Sanitize())
}

const bookingsSQL = `/* demo.bookings */
SELECT
	id,
	created_at,
	customer_id,
	phone,
	status,
	amount::text
FROM {schema}.bookings
ORDER BY bookings.created_at, bookings.id
LIMIT 10000000`

// bookings reads the table, in the order of the source.
func (d *database) bookings(ctx context.Context) ([]booking, error) {
	rows, _ := d.pool.Query(ctx, d.sql(bookingsSQL))
	result, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b booking, err error) {
		err = row.Scan(&b.ID, &b.CreatedAt, &b.Customer, &b.Phone, &b.Status, (*string)(&b.Amount))
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the bookings at the end: %w", err)
	}
	return result, nil
}

// close removes all that was made. It may be called on a half-open database.
func (d *database) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if d.pool != nil {
		d.pool.Close()
	}
	switch {
	case d.server != nil:
		return removed(d.server.Stop(ctx))
	case d.made:
		return removed(d.drop(ctx))
	default:
		return nil
	}
}

// drop waits for the last transactions of the workers that were just ended, within the time-out of ctx. It runs on a
// connection of its own, since the pool may be full of what was interrupted.
func (d *database) drop(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.url)
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, d.sql("/* demo.drop */ DROP SCHEMA IF EXISTS {schema} CASCADE"))
	}
	if err != nil {
		return fmt.Errorf("remove the demo's schema: %w; remove it by hand: %s", err, d.sql("DROP SCHEMA {schema} CASCADE"))
	}
	return nil
}
