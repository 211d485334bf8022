package draft

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// ErrNoTable reports that no table has the name.
var ErrNoTable = errors.New("no such table")

// DB begins transactions, as *pgxpool.Pool does.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Table is what the catalog says of a table.
type Table struct {
	Schema, Name string
	Kind         string // as pg_class.relkind
	Parent       string // the table that it is a partition of; "" if it is none
	Heirs        bool   // others inherit from it, and it is not partitioned
	Columns      []Column
}

// Column is one column.
type Column struct {
	Name     string
	Type     string // of the base type, as format_type prints it
	NotNull  bool
	Default  string // as pg_get_expr prints it; "" if there is none
	Assigned bool   // by a sequence
	Primary  bool   // part of the primary key
	Unique   bool   // by itself
}

// lookTime bounds the look at the catalog.
const lookTime = 20 * time.Second

// The name is looked up under the role's own search_path, which it may need. Everything else is of pg_catalog.
const (
	resolveSQL = `/* draft.resolve */ SELECT coalesce(pg_catalog.to_regclass($1)::pg_catalog.oid, 0)`
	pathSQL    = `/* draft.path */ SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('statement_timeout', '15s', true)`
)

const tableSQL = `/* draft.table */
SELECT
	n.nspname::text,
	c.relname::text,
	c.relkind::text,
	coalesce((SELECT i.inhparent::regclass::text FROM pg_inherits i WHERE i.inhrelid = c.oid AND c.relispartition LIMIT 1), ''),
	c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = $1`

const columnsSQL = `/* draft.columns */
SELECT
	a.attname::text,
	format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL),
	a.attnotnull,
	coalesce(pg_get_expr(d.adbin, d.adrelid), ''),
	a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false),
	EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)),
	EXISTS (
		SELECT FROM pg_index i
		WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
	)
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`

// Look reads what the catalog says of a table, whose name is written as in SQL. It returns ErrNoTable if there is none
// of that name.
func Look(ctx context.Context, db DB, name string) (t Table, err error) {
	parts, err := pgname.Parse(name)
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrNoTable, err)
	}
	err = reading(ctx, db, func(ctx context.Context, tx pgx.Tx) error {
		var oid uint32
		if err := tx.QueryRow(ctx, resolveSQL, pgx.QueryExecModeExec, pgx.Identifier(parts).Sanitize()).Scan(&oid); err != nil {
			return err
		}
		if oid == 0 {
			return missing(ctx, tx, name, parts[len(parts)-1])
		}
		if _, err := tx.Exec(ctx, pathSQL, pgx.QueryExecModeExec); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, tableSQL, pgx.QueryExecModeExec, oid).Scan(&t.Schema, &t.Name, &t.Kind, &t.Parent, &t.Heirs); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, columnsSQL, pgx.QueryExecModeExec, oid)
		if err != nil {
			return err
		}
		t.Columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Column])
		return err
	})
	if err != nil {
		return t, fmt.Errorf("look at the table: %w", err)
	}
	return t, nil
}

// elsewhereSQL finds tables of that name in other schemas, or spelled with capitals.
const elsewhereSQL = `/* draft.elsewhere */
SELECT n.nspname::text, c.relname::text
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE pg_catalog.lower(c.relname::text) OPERATOR(pg_catalog.=) pg_catalog.lower($1)
	AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::"char"[])
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
ORDER BY 1, 2
LIMIT 3`

// missing is ErrNoTable, with the tables that may have been meant.
func missing(ctx context.Context, tx pgx.Tx, name, table string) error {
	err := fmt.Errorf("%w: %s", ErrNoTable, visible.Line(name))
	rows, queryErr := tx.Query(ctx, elsewhereSQL, pgx.QueryExecModeExec, table)
	if queryErr != nil {
		return err
	}
	var meant []string
	var schema, relation string
	_, queryErr = pgx.ForEachRow(rows, []any{&schema, &relation}, func() error {
		meant = append(meant, visible.Line(written(schema, relation)))
		return nil
	})
	if queryErr != nil || len(meant) == 0 {
		return err
	}
	return fmt.Errorf("%w; there is %s", err, strings.Join(meant, ", "))
}

func reading(ctx context.Context, db DB, f func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	tx, err := db.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return f(ctx, tx)
}

// Written is the name of the table, as in SQL and as the file has it.
func (t Table) Written() string { return written(t.Schema, t.Name) }

// written quotes only what needs it, since people read it.
func written(parts ...string) string {
	plain := strings.Join(parts, ".")
	if read, err := pgname.Parse(plain); err != nil || strings.Join(read, ".") != plain {
		return pgx.Identifier(parts).Sanitize()
	}
	return plain
}

// column returns a column by its name; nil if there is none.
func (t Table) column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// Candidate is a table that may be delivered.
type Candidate struct {
	Table string  // as in SQL
	Rows  float64 // as the server estimates; below 0 if it does not know
	Key   string  // the columns of its primary key
	Time  string  // its columns that hold a time with a zone
}

const candidatesSQL = `/* draft.candidates */
SELECT
	n.nspname::text,
	c.relname::text,
	c.reltuples::float8,
	coalesce((
		SELECT string_agg(a.attname, ', ' ORDER BY array_position(i.indkey::int2[], a.attnum))
		FROM pg_index i
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
		WHERE i.indrelid = c.oid AND i.indisprimary
	), ''),
	coalesce((
		SELECT string_agg(a.attname, ', ' ORDER BY a.attnum)
		FROM pg_attribute a
		WHERE a.attrelid = c.oid AND a.atttypid = 'timestamptz'::regtype AND NOT a.attisdropped AND a.attnum > 0
	), '')
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
	AND NOT c.relispartition
	AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	AND n.nspname NOT LIKE 'pg\_%'
	AND coalesce(obj_description(c.oid, 'pg_class'), '') NOT LIKE 'ordered-dispatcher:%'
	AND c.relname <> 'ordered_dispatcher_migration'
	AND has_schema_privilege(n.oid, 'USAGE')
	AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY
	c.relname LIKE '%outbox%' DESC,
	c.relname LIKE '%event%' DESC,
	n.nspname,
	c.relname
LIMIT $1`

// MaxCandidates bounds how many tables Candidates returns.
const MaxCandidates = 200

// Candidates returns the tables that the role may read, those first that look like a list of events.
func Candidates(ctx context.Context, db DB) (all []Candidate, err error) {
	err = reading(ctx, db, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, pathSQL, pgx.QueryExecModeExec); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, candidatesSQL, pgx.QueryExecModeExec, MaxCandidates)
		if err != nil {
			return err
		}
		var schema, name string
		var c Candidate
		_, err = pgx.ForEachRow(rows, []any{&schema, &name, &c.Rows, &c.Key, &c.Time}, func() error {
			c.Table = written(schema, name)
			all = append(all, c)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for tables: %w", err)
	}
	return all, nil
}
