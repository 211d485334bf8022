package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Partition is a table below the source's table: a partition of it, a part of a partition, or a table that inherits
// from it. Tables also lists the source's table itself.
type Partition struct {
	oid    uint32
	schema string
	table  string
	rows   string // the condition of the rows that are in it or below it
	above  uint32 // the oid of the table that it is a part of
	// Attach is the SQL that makes it a part of that table again; "" for the source's table itself.
	Attach string
	// Detaching: a DETACH … CONCURRENTLY was begun and did not end. A read of the source's table does not see its
	// rows.
	Detaching bool
}

// OID of the partition. A rename or a detach does not change it.
func (p Partition) OID() uint32 { return p.oid }

// Below reports whether the partition is directly a part of another one.
func (p Partition) Below(other Partition) bool { return p.above == other.oid }

// Name of the partition, with its schema.
func (p Partition) Name() string { return qualify(p.schema, p.table) }

// Named reports whether a name means the partition. As in SQL, the name may have a schema or not.
func (p Partition) Named(name string) bool {
	parts, err := parseName(name)
	switch {
	case err != nil:
		return false
	case len(parts) == 1:
		return parts[0] == p.table
	default:
		return parts[0] == p.schema && parts[1] == p.table
	}
}

// maxPartitions is how many partitions are looked at.
const maxPartitions = 10_000

// namedSQL finds the table that the name leads to now: the layout may be older.
const namedSQL = `/* source.named */ SELECT to_regclass($1)::oid`

// OID returns the oid of the table that the name leads to now, found without a lock on the table; 0 if there is none.
func (s *Source) OID(ctx context.Context) (oid uint32, err error) {
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		result := tx.Conn().PgConn().ExecParams(ctx, namedSQL, [][]byte{[]byte(s.located().Table)}, nil, nil, nil).Read()
		if result.Err != nil || result.Rows[0][0] == nil {
			return result.Err
		}
		n, err := strconv.ParseUint(string(result.Rows[0][0]), 10, 32)
		oid = uint32(n)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find table %s: %w", s.config.Table, err)
	}
	return oid, nil
}

// partitionsSQL lists a table and everything below it, by the indexes of pg_inherits. The constraint of a partition
// is true for its own rows, and for no other row of the table. It needs no right to the partition, and leads the
// planner to that partition alone. A default partition without sibling partitions has no constraint, and all rows.
// The rows of a table that inherits, or that others inherit from, are recognized by its oid, which needs a right to
// tableoid. A partitioned table has no rows of its own.
const partitionsSQL = "/* source.partitions */" + treeSQL + `
SELECT
	c.oid, n.nspname::text, c.relname::text,
	CASE
		WHEN above.oid IS NULL AND c.relkind = 'p' THEN 'false'
		WHEN above.oid IS NULL AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid) THEN 'true'
		WHEN above.oid IS NOT NULL AND c.relispartition THEN coalesce(pg_get_partition_constraintdef(c.oid), 'true')
		ELSE 't.tableoid = ' || c.oid || '::oid'
	END,
	above.oid IS NOT NULL AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhdetachpending),
	coalesce(above.oid, 0),
	CASE WHEN above.oid IS NULL THEN '' ELSE coalesce(
		format('ALTER TABLE %%I.%%I ATTACH PARTITION %%I.%%I ', above.nspname, above.relname, n.nspname, c.relname) || pg_get_expr(c.relpartbound, c.oid),
		format('ALTER TABLE %%I.%%I INHERIT %%I.%%I', n.nspname, c.relname, above.nspname, above.relname))
	END
FROM tree
JOIN pg_class c ON c.oid = tree.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
	SELECT p.oid, p.relname, m.nspname
	FROM pg_inherits i
	JOIN pg_class p ON p.oid = i.inhparent
	JOIN pg_namespace m ON m.oid = p.relnamespace
	WHERE i.inhrelid = c.oid AND i.inhparent IN (SELECT oid FROM tree)
	ORDER BY i.inhseqno
	LIMIT 1
) above ON true
ORDER BY 2, 3
LIMIT %[2]d`

// Partitions lists the tables below the source's table, in the order of their names.
func (s *Source) Partitions(ctx context.Context) ([]Partition, error) {
	all, err := s.Tables(ctx)
	return slices.DeleteFunc(all, func(p Partition) bool { return p.above == 0 }), err
}

// Tables lists the tables of Partitions, and the source's table itself: the one that its name leads to now, by its
// oid.
func (s *Source) Tables(ctx context.Context) (all []Partition, err error) {
	err = s.ask(ctx, "list the partitions of", func(l *layout, ask asker) error {
		named, err := ask(namedSQL, []byte(l.sql()))
		if err == nil && named[0][0] == nil {
			err = errNoTable
		}
		if err != nil {
			return err
		}
		root, err := strconv.ParseUint(string(named[0][0]), 10, 32)
		if err != nil {
			return err
		}
		rows, err := ask(fmt.Sprintf(partitionsSQL, root, maxPartitions+1))
		if err == nil && len(rows) > maxPartitions {
			err = fmt.Errorf("there are %d or more, and no more are looked at", maxPartitions)
		}
		for _, values := range rows {
			oid, oidErr := strconv.ParseUint(string(values[0]), 10, 32)
			above, aboveErr := strconv.ParseUint(string(values[5]), 10, 32)
			if err := errors.Join(oidErr, aboveErr); err != nil {
				return err
			}
			all = append(all, Partition{
				oid: uint32(oid), schema: string(values[1]), table: string(values[2]), rows: string(values[3]), above: uint32(above),
				Attach: string(values[6]), Detaching: string(values[4]) == "t"})
		}
		return err
	})
	return all, err
}

// partitionLineageSQL names a partition and the tables below it, in the form that holdersSQL takes. The tables above
// it do not count: an INSERT that is routed into the partition also locks the partition itself.
const partitionLineageSQL = `/* source.partition_writers */
WITH RECURSIVE lineage (oid) AS (
	SELECT %d::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN lineage ON i.inhparent = lineage.oid
)`

// PartitionWriters returns the open transactions that write to a partition, or did, oldest first, at most 100. Their
// rows are not visible yet.
func (s *Source) PartitionWriters(ctx context.Context, p Partition) (writers []Writer, err error) {
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		writers, err = collectWriters(ctx, tx, fmt.Sprintf(partitionLineageSQL, p.oid)+holdersSQL)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the writers of %s: %w", p.Name(), err)
	}
	return writers, nil
}

// MaxUndelivered bounds the count of Undelivered.
const MaxUndelivered = 1000

// First returns the first committed record after a position; nil if there is none.
func (s *Source) First(ctx context.Context, after cursor.Position) (first *processor.Record, err error) {
	err = s.ask(ctx, "find the first record of", func(l *layout, ask asker) error {
		args, err := l.startAfter(after)
		if err != nil {
			return err
		}
		records, err := l.found(ask(fmt.Sprintf("/* source.first */ SELECT %s FROM %s AS t WHERE %s ORDER BY %s LIMIT 1",
			l.keys(s.config), l.sql(), l.behind(s.config, after == ""), strings.Join(l.orderBy(s.config), ", ")), args...))
		if len(records) > 0 {
			first = &records[0]
		}
		return err
	})
	return first, err
}

// undeliveredSQL counts the records after a position in one partition, by index range.
const undeliveredSQL = `/* source.undelivered */
SELECT count(*)
FROM (
	SELECT
	FROM %s AS t
	WHERE %s
	AND (
%s
)
	LIMIT %d
) undelivered`

// Undelivered counts the committed records after a position in a partition, up to MaxUndelivered. It queries the
// source's table, so the role only needs a right to the columns of the partition key. For a partition that is
// Detaching it queries the partition itself, which takes a right to that partition.
func (s *Source) Undelivered(ctx context.Context, after cursor.Position, p Partition) (records int64, err error) {
	err = s.ask(ctx, fmt.Sprintf("count what is undelivered in %s of", p.Name()), func(l *layout, ask asker) error {
		args, err := l.startAfter(after)
		if err != nil {
			return err
		}
		from, rows := l.sql(), p.rows
		if p.Detaching {
			from, rows = pgx.Identifier{p.schema, p.table}.Sanitize(), "true"
		}
		counted, err := ask(fmt.Sprintf(undeliveredSQL, from, l.behind(s.config, after == ""), rows, MaxUndelivered), args...)
		if err != nil {
			return err
		}
		records, err = strconv.ParseInt(string(counted[0][0]), 10, 64)
		return err
	})
	return records, s.withRight(ctx, err)
}

// startAfter returns the arguments of behind for a position.
func (l *layout) startAfter(after cursor.Position) ([][]byte, error) {
	if after == "" {
		return nil, nil
	}
	k, err := l.kind.parse(after)
	if err != nil {
		return nil, processor.Permanent(err)
	}
	return l.arguments(k), nil
}
