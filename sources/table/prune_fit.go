package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Misfit reports that the rows of a table cannot be removed in the way of a rule, and the SQL that changes that.
type Misfit struct{ Problem, Fix string }

func (e *Misfit) Error() string { return e.Problem + ": " + e.Fix }

// Markable returns an error if Mark cannot set a column.
func (p *Pruning) Markable(ctx context.Context, tx pgx.Tx, column string) error {
	_, err := p.marking(ctx, tx, column)
	return err
}

// Droppable returns an error if the table has no partitions that Ranges lists.
func (p *Pruning) Droppable(ctx context.Context, tx pgx.Tx) error {
	_, err := p.listed(ctx, tx)
	return err
}

// archivableSQL finds a relation, whether its rows are rows of the table %[1]d, or of one above it, what of it is no
// table, since nothing here shows what a view or a foreign table makes of rows, the columns that it
// lacks, and those that may change a value: an INSERT rounds without an error, or leaves out blanks. A column without a
// typmod changes none. The fix for one keeps the type of the archive, since a narrower one would round what is there.
// It finds as well which table of the archive a crash empties, unless it empties the source's one, too. A table with
// partitions has no rows itself. And it finds the role if row-level security hides rows from it. It needs no right to any.
const archivableSQL = `/* source.archivable */
WITH RECURSIVE above (oid) AS (
	SELECT %[1]d::oid
	UNION
	SELECT i.inhparent FROM pg_inherits i JOIN above ON i.inhrelid = above.oid
), tree (oid) AS (
	SELECT oid FROM above
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
), archive (oid) AS (
	SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN archive ON i.inhparent = archive.oid
)
SELECT
	c.oid IN (SELECT oid FROM tree),
	(
		SELECT format('%%I.%%I', m.nspname, a.relname)
		FROM archive
		JOIN pg_class a USING (oid)
		JOIN pg_namespace m ON m.oid = a.relnamespace
		WHERE a.relkind NOT IN ('r', 'p')
		ORDER BY 1
		LIMIT 1
	),
	(
		SELECT string_agg(format('ADD COLUMN %%I %%s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
		FROM pg_attribute a
		WHERE a.attrelid = %[1]d AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
			AND NOT EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = c.oid AND b.attname = a.attname AND b.attnum > 0 AND b.attgenerated = '')
	),
	differ.columns,
	differ.fix,
	(
		SELECT format('%%I.%%I', m.nspname, a.relname)
		FROM archive
		JOIN pg_class a USING (oid)
		JOIN pg_namespace m ON m.oid = a.relnamespace
		WHERE a.relpersistence <> 'p' AND a.relkind <> 'p' AND EXISTS (SELECT FROM pg_class s WHERE s.oid = %[1]d AND s.relpersistence = 'p')
		ORDER BY 1
		LIMIT 1
	),
	CASE WHEN row_security_active(c.oid) THEN current_user::text END
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
	SELECT
		string_agg(format('%%I is %%s, and %%s in the archive', a.attname, format_type(a.atttypid, a.atttypmod), format_type(b.atttypid, b.atttypmod)), '; ' ORDER BY a.attnum),
		string_agg(format('ALTER COLUMN %%I TYPE %%s', a.attname, format_type(a.atttypid, CASE a.atttypid WHEN b.atttypid THEN -1 ELSE a.atttypmod END)), ', ' ORDER BY a.attnum)
	FROM pg_attribute a
	JOIN pg_attribute b ON b.attname = a.attname AND b.attrelid = c.oid AND b.attnum > 0 AND b.attgenerated = ''
	WHERE a.attrelid = %[1]d AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		AND (b.atttypid <> a.atttypid OR b.atttypmod NOT IN (a.atttypmod, -1))
) differ (columns, fix)
WHERE n.nspname = $1 AND c.relname = $2
LIMIT 1`

// Archivable returns an error if Archive cannot move rows into a table.
func (p *Pruning) Archivable(ctx context.Context, tx pgx.Tx, into string) error {
	parts, err := parseName(into)
	if err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("archive %s has no schema: write public.%[1]s", into)
	}
	found, err := run(ctx, tx, fmt.Sprintf(archivableSQL, p.layout.oid), values{[]byte(parts[0]), []byte(parts[1])})
	if err != nil {
		return err
	}
	archive := qualify(parts[0], parts[1])
	create := "CREATE TABLE %s (LIKE " + p.Table() + ")"
	another := "name another one, made by " + fmt.Sprintf(create, qualify(parts[0], p.layout.table+"_archive"))
	switch {
	case len(found.Rows) == 0:
		return &Misfit{"there is no table " + archive, fmt.Sprintf(create, archive)}
	case string(found.Rows[0][0]) == "t":
		return &Misfit{fmt.Sprintf("archive %s is a table of the tree of %s, so its rows would not leave that", archive, p.Table()), another}
	case found.Rows[0][1] != nil:
		return &Misfit{fmt.Sprintf("%s is not a table, so it is not known whether archive %s keeps rows as they are", found.Rows[0][1], archive), another}
	case found.Rows[0][2] != nil:
		return &Misfit{fmt.Sprintf("archive %s lacks columns of %s", archive, p.Table()), fmt.Sprintf("ALTER TABLE %s %s", archive, found.Rows[0][2])}
	case found.Rows[0][3] != nil:
		return &Misfit{fmt.Sprintf("archive %s may change values of %s: %s", archive, p.Table(), found.Rows[0][3]),
			fmt.Sprintf("ALTER TABLE %s %s; that converts the rows of the archive, so name another one if they would change", archive, found.Rows[0][4])}
	case found.Rows[0][5] != nil:
		return &Misfit{fmt.Sprintf("%s is an unlogged or temporary table, and %s is not: a crash would empty the archive", found.Rows[0][5], p.Table()),
			fmt.Sprintf("ALTER TABLE %s SET LOGGED", found.Rows[0][5])}
	case found.Rows[0][6] != nil: // the server would refuse the INSERT, in words that name no fix
		problem, fix := hides(archive, string(found.Rows[0][6]))
		return &Misfit{problem + ", so none can go there", fix}
	}
	return nil
}
