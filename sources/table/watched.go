package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// watchedSQL lists the conditions that distinguish the rows of one partition from the rows of others, of every kind
// that the table has: the constraint of one partition below each table, the partition keys of all levels, and
// tableoid where tables inherit. Undelivered uses conditions like these. The keys are listed although the constraints
// name them: there may be no partition yet.
const watchedSQL = "/* source.watched */" + treeSQL + `, below AS (
	SELECT DISTINCT ON (i.inhparent) pg_get_partition_constraintdef(i.inhrelid) AS condition
	FROM tree
	JOIN pg_inherits i ON i.inhparent = tree.oid
	JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
	ORDER BY i.inhparent, i.inhrelid = p.partdefid, i.inhrelid
), keys AS (
	SELECT concat_ws(', ',
		(SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a WHERE a.attrelid = p.partrelid AND a.attnum = ANY (p.partattrs::smallint[]) AND a.attnum > 0),
		pg_get_expr(p.partexprs, p.partrelid)) AS list
	FROM lineage
	JOIN pg_partitioned_table p ON p.partrelid = lineage.oid
)
SELECT condition FROM below WHERE condition IS NOT NULL
UNION
SELECT format('ROW(%%s) IS NULL', list) FROM keys
UNION
SELECT 't.tableoid = 0' WHERE EXISTS (
	SELECT FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid JOIN pg_class c ON c.oid = i.inhrelid AND NOT c.relispartition
)
LIMIT 10000`

// watching returns a statement that needs the rights of Undelivered for every partition; "" if the table has no
// partition, and is not made for any.
func (l *layout) watching(ctx context.Context, tx pgx.Tx) (string, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(watchedSQL, l.oid), pgx.QueryExecModeExec)
	if err != nil {
		return "", err
	}
	conditions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(conditions) == 0 {
		return "", err
	}
	return fmt.Sprintf("/* source.watching */ SELECT FROM %s AS t WHERE (%s)", l.sql(), strings.Join(conditions, ") OR (")), nil
}

// unwatchedSQL lists those columns of watchedSQL that our role may not read. The columns of an expression in a
// partition key depend on the table.
const unwatchedSQL = "/* source.unwatched */" + treeSQL + `, named AS (
	SELECT k.attname
	FROM lineage
	JOIN pg_partitioned_table p ON p.partrelid = lineage.oid
	JOIN pg_attribute k ON k.attrelid = p.partrelid AND k.attnum > 0 AND (
		k.attnum = ANY (p.partattrs::smallint[])
		OR EXISTS (
			SELECT FROM pg_depend d
			WHERE d.classid = 'pg_class'::regclass AND d.objid = k.attrelid AND d.objsubid = k.attnum
			AND d.refclassid = 'pg_class'::regclass AND d.refobjid = k.attrelid AND d.refobjsubid = 0 AND d.deptype = 'i'
		)
	)
	UNION
	SELECT 'tableoid' WHERE EXISTS (
		SELECT FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid JOIN pg_class c ON c.oid = i.inhrelid AND NOT c.relispartition
	)
)
SELECT quote_ident(a.attname), quote_ident(current_user)
FROM named
JOIN pg_attribute a ON a.attrelid = %[1]d::oid AND a.attname = named.attname AND NOT a.attisdropped
WHERE NOT has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY 1
LIMIT 2000`

// unwatched is a column that our role may not read. Both names are as SQL takes them.
type unwatched struct{ Column, Role string }

// InspectPartitions finds which right our role lacks to count the records of each partition. Reading the table does
// not need that right: see Undelivered. It returns an error if the database did not answer.
func (s *Source) InspectPartitions(ctx context.Context) ([]Finding, error) {
	s.mu.Lock()
	l, err := s.current(ctx)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var found []Finding
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		lacking, err := collect[unwatched](ctx, tx, fmt.Sprintf(unwatchedSQL, l.oid))
		if err != nil || len(lacking) > 0 {
			found = l.unwatched(lacking)
			return err
		}
		statement, err := l.watching(ctx, tx)
		if err == nil && statement != "" {
			_, err = tx.Exec(ctx, "EXPLAIN "+statement, pgx.QueryExecModeExec)
		}
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return []Finding{finding(Warn, "run, as the owner, what `ordered-dispatcher grants` prints for the role",
			"the partitions of %s cannot be read: %s (SQLSTATE %s)"+unwatchedThen, l.name(), pgErr.Message, pgErr.Code)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the rights to the partitions of %s: %w", l.name(), lasting(err))
	}
	return found, nil
}

// unwatchedThen describes the consequence of a missing right.
const unwatchedThen = ". So `ordered-dispatcher partitions` calls none of them safe to drop, and a worker does not notice when one is dropped with undelivered records"

func (l *layout) unwatched(lacking []unwatched) []Finding {
	if len(lacking) == 0 {
		return nil
	}
	var columns []string
	for _, u := range lacking {
		columns = append(columns, u.Column)
	}
	names, role := strings.Join(columns, ", "), lacking[0].Role
	return []Finding{finding(Warn, fmt.Sprintf("GRANT SELECT (%s) ON %s TO %s", names, l.sql(), role),
		"role %s may not read %s of %s, which identifies its partitions"+unwatchedThen, role, names, l.name())}
}

// withRight adds to an error of Undelivered which right is missing, if one is.
func (s *Source) withRight(ctx context.Context, err error) error {
	var denied *pgconn.PgError
	if !errors.As(err, &denied) || denied.Code != "42501" {
		return err
	}
	if found, _ := s.InspectPartitions(ctx); len(found) > 0 {
		return fmt.Errorf("%w; fix: %s", err, found[0].Fix)
	}
	return err
}
