package operator

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// ownersSQL finds tables that a role made only by the right of PUBLIC. That role is none of ours and not a
// superuser. It is not one of the owners of the schema or the database, and was not given the right to create
// there.
const ownersSQL = `/* doctor.owners */
SELECT
	c.relname::pg_catalog.text,
	r.rolname::pg_catalog.text
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) c.relowner
JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
WHERE n.nspname OPERATOR(pg_catalog.=) $1
	AND c.relname OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.name[])
	AND NOT pg_catalog.pg_has_role(c.relowner, 'MEMBER')
	AND NOT pg_catalog.pg_has_role(c.relowner, n.nspowner, 'MEMBER')
	AND NOT pg_catalog.pg_has_role(c.relowner, d.datdba, 'MEMBER')
	AND NOT EXISTS (
		SELECT FROM pg_catalog.aclexplode(n.nspacl) a
		WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE'
			AND a.grantee OPERATOR(pg_catalog.<>) 0
			AND pg_catalog.pg_has_role(c.relowner, a.grantee, 'USAGE'))
ORDER BY 1`

const openSQL = `/* doctor.open */
SELECT pg_catalog.has_schema_privilege('public', oid, 'CREATE') FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) $1`

// ourTables are the tables of the migrations, and the one with their versions.
func ourTables() []string {
	return []string{"cursor", "cursor_event", "cursor_past", "cursor_pruned", "cursor_amended", "dead_letter", "ordered_dispatcher_migration"}
}

// owners warns if a foreign role can create objects beside the cursor tables, or owns one of them. The owner of
// a table can change it, its rows and its triggers, and triggers run with the rights of the role that writes.
func (d *diagnosis) owners(ctx context.Context) error {
	rows, err := d.conn.Query(ctx, openSQL, d.op.config.Schema)
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil {
		return fmt.Errorf("ask who may create in the schema of the cursor tables: %w", err)
	}
	if len(open) > 0 && open[0] {
		d.find(cursor.Warn, fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM PUBLIC", d.op.db.Schema),
			"every role may create in schema %q, beside the cursor tables", d.op.config.Schema)
	}
	rows, err = d.conn.Query(ctx, ownersSQL, d.op.config.Schema, ourTables())
	if err != nil {
		return err
	}
	var table, role string
	_, err = pgx.ForEachRow(rows, []any{&table, &role}, func() error {
		whole := d.op.db.Schema + "." + pgx.Identifier{table}.Sanitize()
		d.find(cursor.Warn, fmt.Sprintf("look at its rows and triggers, then give it to the role that runs `migrate`: ALTER TABLE %s OWNER TO …", whole),
			"%s belongs to role %s, which has no right of its own to create in the schema: it can change rows and triggers there", whole, role)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for the owners of the cursor tables: %w", err)
	}
	return nil
}
