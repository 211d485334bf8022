package table

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Range is a partition of a table that is partitioned by ranges of created_at.
type Range struct {
	Partition
	// Over: no row that is created from now on belongs into it, and none that is younger than keep. If it is Detached, it
	// only has no row that is younger than keep.
	Over bool
	// Plain: it cannot be detached concurrently, since the table has a default partition.
	Plain bool
	// Closed: it has the constraint of CloseSQL, which keeps new rows out.
	Closed bool
	// Detached: it is no partition any more, and has no Attach.
	Detached bool
}

// Closing is the constraint of a partition that is to be dropped. Programs that write to it see the name. Its comment is
// the name of the table that the partition belongs to, or did.
const Closing = "ordered_dispatcher_drops_this_partition"

// Table returns the partition's name, quoted for SQL.
func (r Range) Table() string { return pgx.Identifier{r.schema, r.table}.Sanitize() }

// rangesSQL lists the partitions right below a table, if its key is created_at ($1) alone. Their constraint is asked
// about the time $2: a range that holds rows before that time, and not the time itself, is over.
const rangesSQL = `/* source.ranges */
SELECT
	c.oid,
	n.nspname::text,
	c.relname::text,
	coalesce(pg_get_partition_constraintdef(c.oid), 'true'),
	format('ALTER TABLE %%I.%%I ATTACH PARTITION %%I.%%I ', m.nspname, p.relname, n.nspname, c.relname) || pg_get_expr(c.relpartbound, c.oid),
	i.inhdetachpending,
	pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT',
	EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = c.oid AND o.conname = '` + Closing + `')
FROM pg_partitioned_table k
JOIN pg_attribute a ON a.attrelid = k.partrelid AND a.attname = $1
JOIN pg_class p ON p.oid = k.partrelid
JOIN pg_namespace m ON m.oid = p.relnamespace
JOIN pg_inherits i ON i.inhparent = k.partrelid
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.partrelid = %d AND k.partstrat = 'r' AND k.partnatts = 1 AND k.partattrs[0] = a.attnum
ORDER BY
	i.inhdetachpending DESC,
	substring(pg_get_expr(c.relpartbound, c.oid) FROM '^FOR VALUES FROM \(''([^'']+)''\)')::timestamptz NULLS FIRST,
	3
LIMIT %d`

// Ranges lists the partitions, but not a default one. It begins with the one that is Detaching, since a table has one
// such partition at most, and goes on from the oldest to the newest. It returns an error if the table is not partitioned by ranges of
// created_at alone.
func (p *Pruning) Ranges(ctx context.Context, tx pgx.Tx) (all []Range, err error) {
	listed, err := p.listed(ctx, tx)
	if err != nil {
		return nil, err
	}
	plain := false
	for _, values := range listed {
		if string(values[6]) == "t" {
			plain = true
			continue
		}
		oid, err := strconv.ParseUint(string(values[0]), 10, 32)
		if err != nil {
			return nil, err
		}
		r := Range{Partition: Partition{oid: uint32(oid), schema: string(values[1]), table: string(values[2]), rows: string(values[3]),
			above: p.layout.oid, Attach: string(values[4]), Detaching: string(values[5]) == "t"}, Closed: string(values[7]) == "t"}
		if r.Over, err = p.over(ctx, tx, r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for i := range all {
		all[i].Plain = plain
	}
	return all, nil
}

// listed is what the catalog says of the partitions.
func (p *Pruning) listed(ctx context.Context, tx pgx.Tx) ([][][]byte, error) {
	parts, _ := parseName(p.layout.at)
	listed, err := run(ctx, tx, fmt.Sprintf(rangesSQL, p.layout.oid, maxPartitions), values{[]byte(parts[0])})
	if err == nil && len(listed.Rows) == 0 {
		err = fmt.Errorf("%s has no partitions by ranges of %s: use another mode than drop", p.Table(), p.layout.at)
	}
	if err != nil {
		return nil, err
	}
	return listed.Rows, nil
}

// overSQL asks the constraint of a partition about the time before which rows are old, and whether it has such a row.
// A range is without gaps, so one that has older rows and not that time has no time after it.
const overSQL = `/* source.over */
SELECT
	(SELECT (%s) IS NOT TRUE FROM (SELECT (now() AT TIME ZONE 'UTC' - $1::interval)%s AS %s) AS t)
	AND EXISTS (SELECT FROM %s AS t WHERE t.%[3]s < (now() AT TIME ZONE 'UTC' - $1::interval)%[2]s LIMIT 1)`

func (p *Pruning) over(ctx context.Context, tx pgx.Tx, r Range) (bool, error) {
	result, err := run(ctx, tx, fmt.Sprintf(overSQL, r.rows, p.zone(), quote(p.layout.at), r.Table()), values{p.interval()})
	if err != nil {
		return false, err
	}
	return string(result.Rows[0][0]) == "t", nil
}

// zone turns a time of UTC into the type of created_at.
func (p *Pruning) zone() string {
	if p.layout.atType == "timestamp" {
		return ""
	}
	return " AT TIME ZONE 'UTC'"
}

// interval is keep as a parameter.
func (p *Pruning) interval() []byte {
	return []byte(fmt.Sprintf("%d microseconds", p.keep.Microseconds()))
}

const sharesSQL = "/* source.shares */" + treeSQL + `, part (oid) AS (
	SELECT %[2]d::oid
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
SELECT EXISTS (SELECT FROM tree JOIN part USING (oid))`

// shares reports whether a process reads any table of a partition. If not, its condition would scan the rows in vain.
func (n need) shares(ctx context.Context, tx pgx.Tx, r Range) (bool, error) {
	if !n.part {
		return true, nil
	}
	found, err := run(ctx, tx, fmt.Sprintf(sharesSQL, n.layout.oid, r.oid), nil)
	return err == nil && string(found.Rows[0][0]) == "t", err
}

const firstNeededSQL = `/* source.first_needed */
SELECT %s
FROM %s AS t
WHERE %s
ORDER BY %s
LIMIT 1`

// Needed returns the first row of a partition, attached or not, that a process needs, and which does; nil if there is
// none. It looks by the index ranges after the positions.
func (p *Pruning) Needed(ctx context.Context, tx pgx.Tx, r Range) (*Stop, error) {
	for _, n := range p.needs {
		shares, err := n.shares(ctx, tx, r)
		if err != nil {
			return nil, err
		}
		if !shares {
			continue
		}
		var v values
		condition, err := n.needed(&v)
		if err != nil {
			return nil, err
		}
		c := n.Source.config
		found, err := run(ctx, tx, fmt.Sprintf(firstNeededSQL, n.layout.keys(c), r.Table(), condition, strings.Join(n.layout.orderBy(c), ", ")), v)
		if err != nil {
			return nil, err
		}
		if len(found.Rows) > 0 {
			record, err := n.layout.record(found.Rows[0])
			return &Stop{Record: record, By: []string{n.Process}}, err
		}
	}
	return nil, nil
}

const lastOfSQL = `/* source.last_of */
SELECT %s
FROM %s AS t
ORDER BY %s DESC
LIMIT 1`

const estimateSQL = `/* source.estimate */ SELECT greatest(reltuples, 1)::bigint FROM pg_class WHERE oid = $1::oid`

// Extent returns the last positions of a partition, and how many rows it has by the server's estimate.
func (p *Pruning) Extent(ctx context.Context, tx pgx.Tx, r Range) (removed Removed, err error) {
	through := map[string]cursor.Position{}
	for _, o := range p.orders {
		c := o.Source.config
		found, err := run(ctx, tx, fmt.Sprintf(lastOfSQL, o.layout.keys(c), r.Table(), strings.Join(o.layout.orderBy(c), " DESC, ")), nil)
		if err != nil || len(found.Rows) == 0 {
			return removed, err
		}
		record, err := o.layout.record(found.Rows[0])
		if err != nil {
			return removed, err
		}
		through[o.ordering()] = record.Position
	}
	estimate, err := run(ctx, tx, estimateSQL, values{[]byte(fmt.Sprint(r.oid))})
	if err != nil {
		return removed, err
	}
	removed.Through, removed.Tables = through, []uint32{r.oid}
	removed.Rows, err = strconv.ParseInt(string(estimate.Rows[0][0]), 10, 64)
	return removed, err
}

// Writers returns the open transactions that write to a partition, as PartitionWriters does.
func (p *Pruning) Writers(ctx context.Context, tx pgx.Tx, r Range) ([]Writer, error) {
	return collectWriters(ctx, tx, fmt.Sprintf(partitionLineageSQL, r.oid)+holdersSQL)
}

// DetachSQL detaches a partition within a transaction, under a lock of the whole table. With CONCURRENTLY or FINALIZE
// at its end it needs a session of its own.
func (p *Pruning) DetachSQL(r Range) string {
	return fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", p.layout.sql(), r.Table())
}

// CloseSQL keeps new and changed rows out of a partition, also once it is detached. NOT VALID looks at no row. The
// comment names the table that the partition belongs to: a DETACH leaves no other trace of that.
func (p *Pruning) CloseSQL(r Range) []string {
	return []string{
		fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s CHECK (false) NOT VALID", r.Table(), Closing),
		fmt.Sprintf("COMMENT ON CONSTRAINT %s ON %s IS %s", Closing, r.Table(), literal(p.Table())),
	}
}

// OpenSQL undoes CloseSQL.
func (p *Pruning) OpenSQL(r Range) string {
	return fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", r.Table(), Closing)
}

// leftSQL finds tables of one owner that were closed as partitions of the table %d, whose name is $1, and are no
// partitions any more.
const leftSQL = `/* source.left */
SELECT c.oid, n.nspname::text, c.relname::text
FROM pg_constraint o
JOIN pg_class c ON c.oid = o.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE o.conname = '` + Closing + `'
	AND obj_description(o.oid, 'pg_constraint') = $1
	AND NOT c.relispartition
	AND c.relowner = (SELECT p.relowner FROM pg_class p WHERE p.oid = %d)
ORDER BY 2, 3
LIMIT %d`

// Left lists the tables that were Closed and detached, and are still there.
func (p *Pruning) Left(ctx context.Context, tx pgx.Tx) (all []Range, err error) {
	listed, err := run(ctx, tx, fmt.Sprintf(leftSQL, p.layout.oid, maxPartitions), values{[]byte(p.Table())})
	if err != nil {
		return nil, err
	}
	for _, values := range listed.Rows {
		oid, err := strconv.ParseUint(string(values[0]), 10, 32)
		if err != nil {
			return nil, err
		}
		r := Range{Partition: Partition{oid: uint32(oid), schema: string(values[1]), table: string(values[2]), rows: "true"}, Closed: true, Detached: true}
		if r.Over, err = p.past(ctx, tx, r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// pastSQL asks whether a table has no row that is younger than keep.
const pastSQL = `/* source.past */
SELECT NOT EXISTS (SELECT FROM %s AS t WHERE t.%s >= (now() AT TIME ZONE 'UTC' - $1::interval)%s LIMIT 1)`

func (p *Pruning) past(ctx context.Context, tx pgx.Tx, r Range) (bool, error) {
	result, err := run(ctx, tx, fmt.Sprintf(pastSQL, r.Table(), quote(p.layout.at), p.zone()), values{p.interval()})
	if err != nil {
		return false, err
	}
	return string(result.Rows[0][0]) == "t", nil
}
