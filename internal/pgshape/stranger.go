package pgshape

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrStranger means that another role owns something that is about to be used, or runs code in it.
var ErrStranger = errors.New("another role could run its code with the rights of those who use it")

// TrustedSQL is the part of a WITH that finds the roles whose code a role may run: superusers, the role itself, those of
// which it is a member, and the owner of the database. A superuser is not a member of every role here, although pg_has_role
// says so: it trusts only superusers.
const TrustedSQL = `me AS (
	SELECT oid, rolsuper FROM pg_roles WHERE rolname = current_user
), trusted AS (
	SELECT o.oid
	FROM pg_roles o
	CROSS JOIN me
	WHERE o.rolsuper OR o.oid = me.oid OR o.rolname = 'pg_database_owner'
		OR o.oid = (SELECT datdba FROM pg_database WHERE datname = current_database())
		OR NOT me.rolsuper AND pg_has_role(me.oid, o.oid, 'MEMBER')
)`

// strangerSQL finds who owns a relation, if that is a stranger, or else a function, an operator or a type of one in it.
const strangerSQL = `/* pgshape.stranger */
WITH ` + TrustedSQL + `, relation AS (
	SELECT c.oid, c.relowner
	FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relname = $2
), part AS (
	SELECT 'pg_class'::regclass AS class, oid AS part FROM relation
	UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM relation r JOIN pg_index i ON i.indrelid = r.oid
	UNION ALL SELECT 'pg_attrdef'::regclass, d.oid FROM relation r JOIN pg_attrdef d ON d.adrelid = r.oid
	UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid
	UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid
	UNION ALL SELECT 'pg_rewrite'::regclass, w.oid FROM relation r JOIN pg_rewrite w ON w.ev_class = r.oid
	UNION ALL SELECT 'pg_policy'::regclass, p.oid FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
)
SELECT 1, '', pg_get_userbyid(relowner)::text FROM relation WHERE relowner NOT IN (SELECT oid FROM trusted)
UNION ALL
SELECT 2, coalesce(f.proname, o.oprname, y.typname)::text, pg_get_userbyid(coalesce(f.proowner, o.oprowner, y.typowner))::text
FROM part
JOIN pg_depend d ON d.classid = part.class AND d.objid = part.part
LEFT JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
LEFT JOIN pg_type y ON d.refclassid = 'pg_type'::regclass AND y.oid = d.refobjid
WHERE coalesce(f.proowner, o.oprowner, y.typowner) NOT IN (SELECT oid FROM trusted)
ORDER BY 1, 2, 3
LIMIT 1`

// Trusted returns ErrStranger if what has a name belongs to another role, or runs code of one. The search_path of tx is
// pg_catalog.
func Trusted(ctx context.Context, tx pgx.Tx, name pgx.Identifier) error {
	var rank int
	var calls, owner string
	err := tx.QueryRow(ctx, strangerSQL, pgx.QueryExecModeExec, name[0], name[1]).Scan(&rank, &calls, &owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	role := pgx.Identifier{owner}.Sanitize()
	if calls != "" {
		return fmt.Errorf("%w: it calls %q, which belongs to role %s: drop the trigger, rule, policy, default, constraint or index that does", ErrStranger, calls, role)
	}
	return fmt.Errorf("%w: it belongs to role %s: if that role made it for ordered-dispatcher, run this as that role; else choose another name, or drop it", ErrStranger, role)
}
