package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ownedSQL finds what the catalog says about a partition (%[2]d) of a table (%[1]d) that keeps our role from detaching
// or dropping it.
const ownedSQL = `/* source.owned */
SELECT
	current_user::text,
	pg_has_role(p.relowner, 'USAGE'),
	pg_has_role(c.relowner, 'USAGE'),
	p.relowner = c.relowner,
	(SELECT i.inhrelid::regclass::text FROM pg_inherits i WHERE i.inhparent = p.oid AND i.inhdetachpending AND i.inhrelid <> c.oid LIMIT 1)
FROM pg_class p, pg_class c
WHERE p.oid = %[1]d AND c.oid = %[2]d
LIMIT 1`

// dependentSQL finds an object that DROP TABLE would stop at: a view of the partition, a foreign key to the partition
// itself, a function or a column of its row type. What belongs to the partition also depends on it automatically. A
// foreign key that the table above has goes with the DETACH.
const dependentSQL = `/* source.dependent */
WITH RECURSIVE lineage (oid) AS (
	SELECT %d::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN lineage ON i.inhparent = lineage.oid
), part (class, oid) AS (
	SELECT 'pg_class'::regclass, oid FROM lineage
	UNION ALL
	SELECT 'pg_type'::regclass, t.oid FROM lineage JOIN pg_type t ON t.typrelid = lineage.oid
)
SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
FROM part
JOIN pg_depend d ON d.refclassid = part.class AND d.refobjid = part.oid
WHERE d.deptype = 'n'
	AND NOT EXISTS (
		SELECT
		FROM pg_depend own
		JOIN part p ON p.class = own.refclassid AND p.oid = own.refobjid
		WHERE own.classid = d.classid AND own.objid = d.objid AND own.deptype IN ('a', 'i')
	)
	AND NOT (d.classid = 'pg_constraint'::regclass AND EXISTS (SELECT FROM pg_constraint o WHERE o.oid = d.objid AND o.conparentid <> 0))
ORDER BY 1
LIMIT 1`

// referringSQL lists the foreign keys through which rows may refer to rows of a partition (%d) as a part of its table,
// as DETACH finds them, with the condition of such a pair of rows.
const referringSQL = `/* source.referring */
SELECT
	root.conname::text,
	format('%%I.%%I', n.nspname, c.relname),
	has_table_privilege(c.oid, 'SELECT'),
	(
		SELECT string_agg(format('t.%%I OPERATOR(%%I.%%s) f.%%I', theirs.attname, m.nspname, p.oprname, own.attname), ' AND ')
		FROM unnest(o.confkey, o.conkey, o.conpfeqop) k (theirs, own, op)
		JOIN pg_attribute theirs ON theirs.attrelid = o.confrelid AND theirs.attnum = k.theirs
		JOIN pg_attribute own ON own.attrelid = o.conrelid AND own.attnum = k.own
		JOIN pg_operator p ON p.oid = k.op
		JOIN pg_namespace m ON m.oid = p.oprnamespace
	)
FROM pg_constraint o
JOIN pg_constraint root ON root.oid = o.conparentid
JOIN pg_class c ON c.oid = o.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE o.contype = 'f' AND o.confrelid = %d
ORDER BY 2, 1
LIMIT 1000`

const refersSQL = `/* source.refers */ SELECT EXISTS (SELECT FROM %s AS f JOIN %s AS t ON %s)`

// Obstacle returns why PostgreSQL would refuse to detach or to drop a partition, and what to do; "" if nothing is known
// that would. It takes no lock that a writer needs.
func (p *Pruning) Obstacle(ctx context.Context, tx pgx.Tx, r Range) (string, error) {
	for _, ask := range []func(context.Context, pgx.Tx, Range) (string, error){p.owned, p.dependent, p.referring} {
		if why, err := ask(ctx, tx, r); err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

const tornSQL = "/* source.torn */" + treeSQL + `
SELECT format('ALTER TABLE %%I.%%I DETACH PARTITION %%I.%%I FINALIZE', m.nspname, p.relname, n.nspname, c.relname)
FROM pg_inherits i
JOIN tree ON i.inhparent = tree.oid
JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace m ON m.oid = p.relnamespace
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.inhdetachpending
LIMIT 1`

// Torn returns the statement that ends a DETACH below a partition that was begun and did not end; "" if there is none.
// No read of the partition sees the rows of that part, and a DROP of the partition would remove them.
func (p *Pruning) Torn(ctx context.Context, tx pgx.Tx, r Range) (string, error) {
	found, err := run(ctx, tx, fmt.Sprintf(tornSQL, r.oid), nil)
	if err != nil || len(found.Rows) == 0 {
		return "", err
	}
	return string(found.Rows[0][0]), nil
}

func (p *Pruning) owned(ctx context.Context, tx pgx.Tx, r Range) (string, error) {
	found, err := run(ctx, tx, fmt.Sprintf(ownedSQL, p.layout.oid, r.oid), nil)
	if err != nil || len(found.Rows) == 0 {
		return "", err
	}
	row := found.Rows[0]
	switch is := func(i int) bool { return string(row[i]) == "t" }; {
	case !is(1):
		return fmt.Sprintf("role %s does not own %s: let its owner run prune", row[0], p.Table()), nil
	case !is(2):
		return fmt.Sprintf("role %s does not own it: ALTER TABLE %s OWNER TO the owner of %s", row[0], r.Table(), p.Table()), nil
	case !is(3): // Left would not find it
		return fmt.Sprintf("its owner is not that of %s: ALTER TABLE %s OWNER TO that one", p.Table(), r.Table()), nil
	case row[4] != nil:
		return fmt.Sprintf("a DETACH of %s was begun and did not end, and PostgreSQL detaches one partition of a table at a time", row[4]), nil
	}
	return "", nil
}

func (p *Pruning) dependent(ctx context.Context, tx pgx.Tx, r Range) (string, error) {
	found, err := run(ctx, tx, fmt.Sprintf(dependentSQL, r.oid), nil)
	if err != nil || len(found.Rows) == 0 {
		return "", err
	}
	return fmt.Sprintf("%s depends on it: drop that first", found.Rows[0][0]), nil
}

func (p *Pruning) referring(ctx context.Context, tx pgx.Tx, r Range) (string, error) {
	keys, err := run(ctx, tx, fmt.Sprintf(referringSQL, r.oid), nil)
	if err != nil {
		return "", err
	}
	for _, key := range keys.Rows {
		name, from := key[0], key[1]
		if string(key[2]) != "t" {
			return fmt.Sprintf("our role may not read %s, whose foreign key %s refers to it: GRANT SELECT ON %[1]s", from, name), nil
		}
		refers, err := run(ctx, tx, fmt.Sprintf(refersSQL, from, r.Table(), key[3]), nil)
		if err != nil {
			return "", err
		}
		if string(refers.Rows[0][0]) == "t" {
			return fmt.Sprintf("rows of %s refer to rows of it (foreign key %s): remove them first", from, name), nil
		}
	}
	return "", nil
}
