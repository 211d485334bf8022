package table

// viewsSQL finds the views that rows may be inserted through and that have a default of their own for the order
// column below them. It follows the rule of each view, which alone defines the view's columns. OFFSET 0 makes the
// server read the rules of these views alone (by pg_depend_reference_index). Otherwise the server searches the rules
// of all views of its catalog, for 0.2 s.
const viewsSQL = "/* source.catalog.views */" + treeSQL + `, column_of (relation, attnum) AS (
	SELECT a.attrelid, a.attnum::int
	FROM lineage
	JOIN pg_attribute a ON a.attrelid = lineage.oid AND a.attname = $1 AND NOT a.attisdropped
	UNION
	SELECT r.ev_class, target[1]::int
	FROM column_of
	CROSS JOIN LATERAL (
		SELECT r.ev_class, r.ev_action::text AS action
		FROM pg_depend d
		JOIN pg_rewrite r ON r.oid = d.objid AND r.ev_type = '1'
		WHERE d.classid = 'pg_rewrite'::regclass
			AND d.refclassid = 'pg_class'::regclass AND d.refobjid = column_of.relation AND d.refobjsubid = column_of.attnum
		OFFSET 0
	) r
	CROSS JOIN LATERAL regexp_matches(r.action, ':resno (\d+) :resname (?:\\.|[^\s\\])+ :ressortgroupref \d+ :resorigtbl (\d+) :resorigcol (\d+)', 'g') target
	WHERE target[2]::oid = column_of.relation AND target[3]::int = column_of.attnum
)
SELECT v.oid::regclass::text, v.relkind::text, false, false, false, a.attname::text, pg_get_expr(d.adbin, d.adrelid), '', v.relname::text, ''
FROM column_of
JOIN pg_class v ON v.oid = column_of.relation AND v.relkind = 'v'
JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum = column_of.attnum
JOIN pg_attrdef d ON d.adrelid = v.oid AND d.adnum = column_of.attnum
ORDER BY v.oid
LIMIT 1000`
