package sql

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// ErrNoTables is returned by Remote.Check where Remote.Tables was not run.
var ErrNoTables = errors.New("the sink's tables are missing")

// tablesSQL makes the tables that a Remote keeps in its target. The row of a process is updated in each transaction.
// It has no index besides its key, so its updates stay HOT.
const tablesSQL = `CREATE TABLE {schema}.ordered_dispatcher_applied (
	process_name pg_catalog.text PRIMARY KEY,
	position pg_catalog.text COLLATE pg_catalog."C" NOT NULL,
	sequence bigint NOT NULL,
	epoch bigint NOT NULL,
	dedup_key pg_catalog.text,
	since bigint NOT NULL,
	origin pg_catalog.text,
	recent pg_catalog.bytea,
	updated_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
) WITH (fillfactor = 50);
CREATE TABLE {schema}.ordered_dispatcher_refused (
	process_name pg_catalog.text,
	sequence bigint,
	dedup_key pg_catalog.text,
	applied boolean DEFAULT false,
	PRIMARY KEY (process_name, sequence)
);`

// alterSQL brings tables of an earlier version up to date. Their content proves nothing about the earlier numbers.
const alterSQL = `ALTER TABLE {schema}.ordered_dispatcher_applied ADD COLUMN IF NOT EXISTS since bigint, ADD COLUMN IF NOT EXISTS origin text, ADD COLUMN IF NOT EXISTS recent bytea; ` +
	`UPDATE {schema}.ordered_dispatcher_applied SET since = sequence WHERE since IS NULL; ` +
	`ALTER TABLE {schema}.ordered_dispatcher_applied ALTER since SET NOT NULL; ` +
	`ALTER TABLE {schema}.ordered_dispatcher_refused ADD COLUMN IF NOT EXISTS dedup_key text, ADD COLUMN IF NOT EXISTS applied boolean DEFAULT false; `

// Tables returns the SQL that makes the two tables that a Remote needs in its target. The Remote never makes them
// itself, so its role needs no right to do so. The owner of the schema runs this SQL once for each target, and grants
// the rights of Needs.
func (r *Remote) Tables() string { return r.sql(tablesSQL) }

// Role returns the role of the sink in the target.
func (r *Remote) Role() string { return r.address.User }

// Needs returns the rights that the sink's role needs in the target: on the sink's tables, and for the statements
// (see Sink.Needs).
func (r *Remote) Needs(ctx context.Context) (privilege.Needs, error) {
	needs := privilege.Needs{Privileges: r.own()}
	err := r.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		more, err := r.sink.Needs(ctx, conn)
		needs.Add(more)
		return err
	})
	return needs, err
}

func (r *Remote) own() []privilege.Privilege {
	schema := pgx.Identifier{r.config.Schema}.Sanitize()
	on := func(table, right string, columns ...string) privilege.Privilege {
		return privilege.Privilege{On: privilege.Table, Name: schema + "." + table, Right: right, Columns: columns}
	}
	const applied, refused = "ordered_dispatcher_applied", "ordered_dispatcher_refused"
	return []privilege.Privilege{
		{On: privilege.Schema, Name: schema, Right: "USAGE"},
		on(applied, "SELECT"),
		on(applied, "INSERT", "process_name", "position", "sequence", "epoch", "since"),
		on(applied, "UPDATE", "position", "sequence", "epoch", "dedup_key", "since", "origin", "recent", "updated_at"),
		on(refused, "SELECT"),
		on(refused, "INSERT"),
		on(refused, "UPDATE", "dedup_key", "applied"),
		on(refused, "DELETE"),
	}
}

// Lacking returns the part of its Needs that the sink's role does not hold. The tables must exist.
func (r *Remote) Lacking(ctx context.Context) (lacking []privilege.Privilege, err error) {
	err = r.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		lacking, err = privilege.Missing(ctx, conn, r.own())
		if err != nil || len(lacking) > 0 {
			return err
		}
		needs, err := r.sink.Needs(ctx, conn)
		if err != nil {
			return err
		}
		lacking, err = privilege.Missing(ctx, conn, needs.Privileges)
		return err
	})
	return lacking, err
}

const presentSQL = `/* sql.present */
SELECT
	coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = $1), true),
	EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = 'ordered_dispatcher_applied')
	AND EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = 'ordered_dispatcher_refused'),
	4 = (SELECT count(*) FROM pg_catalog.pg_attribute a
		JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND NOT a.attisdropped
		AND (c.relname, a.attname) IN (('ordered_dispatcher_applied', 'since'), ('ordered_dispatcher_applied', 'origin'), ('ordered_dispatcher_applied', 'recent'), ('ordered_dispatcher_refused', 'applied'))),
	pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`

// Check connects to the target and returns its faults: that it cannot be reached or written to, that the tables are
// missing (ErrNoTables), and its errors about the statements (see Sink.Check). It changes nothing.
func (r *Remote) Check(ctx context.Context) error {
	return r.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var usable, present, current, readOnly bool
		err := prepared.Within(ctx, conn, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, presentSQL, r.config.Schema).Scan(&usable, &present, &current, &readOnly)
		})
		if err != nil {
			return err
		}
		switch {
		case readOnly:
			return errors.New("it cannot be written to: it is a standby, or its sessions are read-only; point url at the primary")
		case !present:
			return fmt.Errorf("%w in schema %q", ErrNoTables, r.config.Schema)
		case !current:
			return errors.New(r.old())
		case !usable:
			return nil // Lacking reports it
		}
		return r.sink.Check(ctx, conn)
	})
}

// with lends a connection of its own, for no longer than making a connection may take.
func (r *Remote) with(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	conn, err := r.connect(ctx, maxRows)
	if err != nil {
		return r.guard.Error(r.unsent(err))
	}
	defer conn.Close(ctx)
	if err := answer.Within(ctx, r.config.Timeout, func(ctx context.Context) error { return do(ctx, conn) }); err != nil {
		return r.guard.Error(fmt.Errorf("%s: %w", r, err))
	}
	return nil
}
