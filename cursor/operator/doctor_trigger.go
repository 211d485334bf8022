package operator

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// triggersSQL finds code at our tables that is not ours: rules, and triggers whose function belongs to a role
// that could not change the table at will anyway. It also returns whether that function should be one of the
// migrations.
const triggersSQL = `/* doctor.triggers */
WITH code AS (
	SELECT t.tgrelid AS rel, 'TRIGGER' AS kind, t.tgname AS name, pg_catalog.format('%I.%I', fn.nspname, f.proname) AS calls, f.proowner AS owner,
		f.pronamespace OPERATOR(pg_catalog.=) c.relnamespace AND f.proname OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.name[]) AS known
	FROM pg_catalog.pg_trigger t
	JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
	JOIN pg_catalog.pg_proc f ON f.oid OPERATOR(pg_catalog.=) t.tgfoid
	JOIN pg_catalog.pg_namespace fn ON fn.oid OPERATOR(pg_catalog.=) f.pronamespace
	WHERE NOT t.tgisinternal
	UNION ALL
	SELECT r.ev_class, 'RULE', r.rulename, '', c.relowner, false
	FROM pg_catalog.pg_rewrite r
	JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.ev_class
)
SELECT code.kind, code.name::pg_catalog.text, c.relname::pg_catalog.text, code.calls, w.rolname::pg_catalog.text, code.known
FROM code
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) code.rel
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_roles w ON w.oid OPERATOR(pg_catalog.=) code.owner
JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
CROSS JOIN LATERAL (SELECT w.rolsuper OR pg_catalog.pg_has_role(w.oid, c.relowner, 'MEMBER') OR pg_catalog.pg_has_role(w.oid, d.datdba, 'MEMBER') AS yes) trusted
WHERE n.nspname OPERATOR(pg_catalog.=) $1
	AND c.relname OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.name[])
	AND (code.kind OPERATOR(pg_catalog.=) 'RULE' OR NOT trusted.yes)
ORDER BY 3, 1, 2
LIMIT 100`

// ourFunctions are the trigger functions of the migrations.
func ourFunctions() []string {
	return []string{"cursor_set_updated_at", "cursor_keep_past", "cursor_continue", "cursor_event_keep"}
}

// triggers finds foreign code at the cursor tables. It runs with the rights of the worker or operator that
// writes there.
func (d *diagnosis) triggers(ctx context.Context) error {
	rows, err := d.conn.Query(ctx, triggersSQL, d.op.config.Schema, ourTables(), ourFunctions())
	if err != nil {
		return err
	}
	var kind, name, table, calls, owner string
	var known bool
	_, err = pgx.ForEachRow(rows, []any{&kind, &name, &table, &calls, &owner, &known}, func() error {
		whole, quoted := d.op.db.Schema+"."+pgx.Identifier{table}.Sanitize(), pgx.Identifier{name}.Sanitize()
		fix := fmt.Sprintf("DROP %s %s ON %s", kind, quoted, whole)
		if known {
			fix = fmt.Sprintf("look at it, then give it to the role that runs `migrate`: ALTER FUNCTION %s OWNER TO …", calls)
		}
		if kind == "RULE" {
			d.find(cursor.Warn, fix, "rule %s on %s does not come from the migrations: it changes what workers write", quoted, whole)
			return nil
		}
		d.find(cursor.Warn, fix, "trigger %s on %s calls %s of role %s, with the rights of each worker and operator that writes there", quoted, whole, calls, owner)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for triggers at the cursor tables: %w", err)
	}
	return nil
}
