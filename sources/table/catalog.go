package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// catalog is the server's description of the table at this moment.
type catalog struct {
	oid       uint32
	schema    string
	table     string
	relkind   string // r, p, v, m, f …
	standby   bool
	hidesRows bool // row-level security is active for our role
	seesAll   bool // our role sees when the transactions of every session began
	tracks    bool // sessions show that, unless they turn it off (track_activities)
	inherits  bool // false: it is a member of the role that does, and does not inherit from it
	timeZone  string
	role      string
	super     bool   // our session has all rights
	owner     string // a role without them that owns the table, or a part of it
	path      string // the search_path of our role
	published bool   // by a subscription of this database: rows with stamps made elsewhere
	database  string // as SQL takes it
	server    string // encoding of the database
	versions  bool   // our role may read xmin: see Late
	client    string // encoding in which our role's sessions get it
	root      string // the topmost table that this one is a partition of, or itself

	grown bool // by a column that DDL adds: the server has it not yet

	partitionKeys []string // columns, of all levels

	members  []member // the table, all below it, and the partitioned tables above it
	triggers []trigger
	columns  map[string]column
	nullable []nullable
	indexes  []index
}

// name returns the table's name, with its schema.
func (cat *catalog) name() string { return qualify(cat.schema, cat.table) }

// member is a table that rows are inserted into, or a view that has a default of its own. It has its own default of
// the order column: a row gets the default of the relation that its INSERT names.
type member struct {
	Name      string
	Kind      string
	Partition bool
	Above     bool
	Unlogged  bool
	Column    string  // as that relation calls it
	Default   *string // as pg_get_expr prints it; that of the column's domain, if it has none
	Schema    string
	Table     string
	Parent    string // the name of the table that it is a partition of; "" if of none
}

type column struct {
	Name     string
	Type     string // of the base type, as format_type prints it
	Typmod   int32  // -1 = none
	NotNull  bool
	Readable bool
	Assigned bool // by a sequence
}

// nullable is a column of a table below this one that may be NULL although the column here may not. Up to PostgreSQL
// 17, a table that inherits may drop the constraint.
type nullable struct{ Table, Column string }

const nullableSQL = "/* source.catalog.nullable */" + treeSQL + `
SELECT c.oid::regclass::text, a.attname::text
FROM tree
JOIN pg_class c ON c.oid = tree.oid
JOIN pg_attribute a ON a.attrelid = tree.oid AND a.attname = ANY ($1::text[]) AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
WHERE tree.oid <> %[1]d::oid AND NOT a.attnotnull AND NOT t.typnotnull
ORDER BY c.oid, a.attnum
LIMIT 1000`

// index is a valid, unique index of the whole table.
type index struct {
	Columns []string // "" for an expression
}

// sequence makes the ids.
type sequence struct {
	OID       uint32
	Name      string
	Cache     int64
	Increment int64
	Cycle     bool
	Readable  bool
}

// errNoTable: no table has that name.
var errNoTable = errors.New("no such table")

// resolveSQL runs under the role's own search_path, which the table's name may need. That path may put anything
// before PostgreSQL's own names.
const resolveSQL = `/* source.catalog.resolve */
SELECT
	pg_catalog.to_regclass($1)::pg_catalog.oid,
	pg_catalog.current_setting('TimeZone'),
	pg_catalog.current_setting('search_path')`

const tableSQL = "/* source.catalog.table */" + treeSQL + `
SELECT
	n.nspname, c.relname, c.relkind::text,
	pg_is_in_recovery(),
	row_security_active(c.oid),
	current_user::text,
	pg_has_role('pg_read_all_stats', 'USAGE'),
	current_setting('track_activities')::boolean,
	NOT pg_has_role('pg_read_all_stats', 'MEMBER'),
	EXISTS (SELECT 1 FROM pg_subscription_rel WHERE srrelid IN (SELECT oid FROM tree)),
	coalesce(pg_partition_root(c.oid), c.oid)::regclass::text,
	quote_ident(current_database()), current_setting('server_encoding'), current_setting('client_encoding'),
	coalesce(has_column_privilege(c.oid, (SELECT attnum FROM pg_attribute WHERE attrelid = c.oid AND attname = 'xmin'), 'SELECT'), true),` + ownersSQL + `
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = $1`

const membersSQL = "/* source.catalog.members */" + treeSQL + `
SELECT
	c.oid::regclass::text, c.relkind::text, c.relispartition,
	c.oid NOT IN (SELECT oid FROM tree),
	c.relpersistence = 'u',
	$1::text,
	coalesce(pg_get_expr(d.adbin, d.adrelid), pg_get_expr(t.typdefaultbin, 0)),
	n.nspname::text, c.relname::text,
	coalesce((SELECT i.inhparent::regclass::text FROM pg_inherits i WHERE i.inhrelid = c.oid AND c.relispartition LIMIT 1), '')
FROM lineage
JOIN pg_class c ON c.oid = lineage.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $1 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind = 'p' OR c.oid IN (SELECT oid FROM tree)
ORDER BY c.oid
LIMIT 100000`

const partitionKeysSQL = "/* source.catalog.partition_keys */" + treeSQL + `
SELECT DISTINCT a.attname::text
FROM lineage
JOIN pg_partitioned_table p ON p.partrelid = lineage.oid
JOIN pg_attribute a ON a.attrelid = lineage.oid AND a.attnum = ANY (p.partattrs::smallint[]) AND a.attnum > 0
ORDER BY 1
LIMIT 100`

const columnsSQL = `/* source.catalog.columns */
SELECT
	a.attname::text,
	format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL),
	CASE WHEN t.typbasetype = 0 THEN a.atttypmod ELSE t.typtypmod END,
	a.attnotnull OR t.typnotnull,
	has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
	a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%::regclass)', false)
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
LIMIT 2000`

const indexesSQL = `/* source.catalog.indexes */
SELECT array_agg(coalesce(a.attname::text, ''))
FROM pg_index i
CROSS JOIN LATERAL generate_series(1, i.indnkeyatts) k (n)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n - 1] AND a.attnum > 0
WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
GROUP BY i.indexrelid
LIMIT 1000`

// sequencesSQL finds the sequences that the id column of any member takes its values from, by identity or by a
// default.
const sequencesSQL = "/* source.catalog.sequences */" + treeSQL + `, found AS (
	SELECT d.objid AS oid
	FROM lineage
	JOIN pg_attribute a ON a.attrelid = lineage.oid AND a.attname = $1 AND NOT a.attisdropped
	JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
		AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'i'
	UNION
	SELECT d.refobjid
	FROM lineage
	JOIN pg_attribute a ON a.attrelid = lineage.oid AND a.attname = $1 AND NOT a.attisdropped
	JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
	JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
)
SELECT s.seqrelid, s.seqrelid::regclass::text, s.seqcache, s.seqincrement, s.seqcycle,
	has_sequence_privilege(s.seqrelid, 'SELECT')
FROM found
JOIN pg_sequence s ON s.seqrelid = found.oid
ORDER BY s.seqrelid
LIMIT 100`

// readCatalog reads the server's description of the table. It leaves tx with the settings of a read.
func readCatalog(ctx context.Context, tx pgx.Tx, c Config) (*catalog, []sequence, error) {
	parts, _ := parseName(c.Table)
	cat := &catalog{columns: map[string]column{}}
	var oid *uint32
	if err := tx.QueryRow(ctx, resolveSQL, pgx.QueryExecModeExec, pgx.Identifier(parts).Sanitize()).Scan(&oid, &cat.timeZone, &cat.path); err != nil {
		return nil, nil, err
	}
	if _, err := tx.Exec(ctx, settingsSQL); err != nil {
		return nil, nil, err
	}
	if oid == nil {
		return nil, nil, errNoTable
	}
	cat.oid = *oid
	err := tx.QueryRow(ctx, fmt.Sprintf(tableSQL, cat.oid), pgx.QueryExecModeExec, cat.oid).Scan(
		&cat.schema, &cat.table, &cat.relkind,
		&cat.standby, &cat.hidesRows, &cat.role, &cat.seesAll, &cat.tracks, &cat.inherits, &cat.published, &cat.root, &cat.database, &cat.server, &cat.client, &cat.versions, &cat.super, &cat.owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, errNoTable // dropped since
	}
	if err != nil {
		return nil, nil, err
	}
	orderColumn := c.Columns.ID
	if c.Order == CreatedAt {
		orderColumn = c.Columns.CreatedAt
	}
	names, _ := parseName(orderColumn)
	if cat.members, err = collect[member](ctx, tx, fmt.Sprintf(membersSQL, cat.oid), names[0]); err != nil {
		return nil, nil, err
	}
	views, err := collect[member](ctx, tx, fmt.Sprintf(viewsSQL, cat.oid), names[0])
	if err != nil {
		return nil, nil, err
	}
	cat.members = append(cat.members, views...)
	if cat.triggers, err = readTriggers(ctx, tx, cat.oid); err != nil {
		return nil, nil, err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(partitionKeysSQL, cat.oid), pgx.QueryExecModeExec)
	if err != nil {
		return nil, nil, err
	}
	if cat.partitionKeys, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, nil, err
	}
	columns, err := collect[column](ctx, tx, columnsSQL, cat.oid)
	if err != nil {
		return nil, nil, err
	}
	for _, column := range columns {
		cat.columns[column.Name] = column
	}
	if cat.nullable, err = collect[nullable](ctx, tx, fmt.Sprintf(nullableSQL, cat.oid), c.order()); err != nil {
		return nil, nil, err
	}
	if cat.indexes, err = collect[index](ctx, tx, indexesSQL, cat.oid); err != nil {
		return nil, nil, err
	}
	id, _ := parseName(c.Columns.ID)
	sequences, err := collect[sequence](ctx, tx, fmt.Sprintf(sequencesSQL, cat.oid), id[0])
	return cat, sequences, err
}

// order lists the columns of the position, as the catalog names them.
func (c Config) order() (columns []string) {
	for _, column := range []string{c.Columns.ID, c.Columns.CreatedAt} {
		if parts, err := parseName(column); err == nil && (column == c.Columns.ID || c.Order == CreatedAt) {
			columns = append(columns, parts[0])
		}
	}
	return columns
}

func collect[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// elsewhereSQL finds a table of that name that the lookup missed: in another schema, or spelled with capitals.
const elsewhereSQL = `/* source.catalog.elsewhere */
SELECT format('%I.%I', n.nspname, c.relname)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE lower(c.relname) = lower($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\_%'
ORDER BY 1
LIMIT 3`

// missingTable suggests the name that may have been meant.
func missingTable(ctx context.Context, tx pgx.Tx, c Config) Finding {
	parts, _ := parseName(c.Table)
	fix := "create it, or name another in source.table"
	rows, err := tx.Query(ctx, elsewhereSQL, pgx.QueryExecModeExec, parts[len(parts)-1])
	if err == nil {
		if names, err := pgx.CollectRows(rows, pgx.RowTo[string]); err == nil && len(names) > 0 {
			fix = "write source.table as " + strings.Join(names, " or ")
		}
	}
	if strings.Contains(fix, `"`) {
		fix += ", with the double quotes"
	}
	return finding(Refuse, fix, "table %s does not exist", c.Table)
}
