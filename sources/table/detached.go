package table

import (
	"context"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// detachedSQL finds the tables whose rows the source's table may have had: partitions whose DETACH … CONCURRENTLY did
// not end, and tables that look like a partition. Those belong to the same owner, have the same columns, and have an
// index that begins with the column of the order ($1): a DETACH leaves no other trace. A table that is partitioned
// itself is left out, since it is more often the table of another tenant. The query reads pg_attribute once, and
// locks nothing.
const detachedSQL = "/* source.detached */" + treeSQL + `, shape (oid, columns) AS (
	SELECT a.attrelid, array_agg(a.attname::text || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attname)
	FROM pg_attribute a
	JOIN pg_class c ON c.oid = a.attrelid
	WHERE a.attnum > 0
		AND NOT a.attisdropped
		AND c.relowner = (SELECT relowner FROM pg_class WHERE oid = %[1]d)
		AND (c.oid = %[1]d OR c.relkind = 'r' AND c.relpersistence <> 't' AND NOT EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)))
	GROUP BY a.attrelid
), alike (oid) AS (
	SELECT shape.oid
	FROM shape
	WHERE shape.oid <> %[1]d
		AND shape.columns = (SELECT columns FROM shape WHERE oid = %[1]d)
		AND EXISTS (
			SELECT
			FROM pg_index i
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
			WHERE i.indrelid = shape.oid AND i.indisvalid AND i.indpred IS NULL AND a.attname = $1
		)
		AND (EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = %[1]d) OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = %[1]d))
), detaching (oid) AS (
	SELECT i.inhrelid
	FROM tree
	JOIN pg_inherits i ON i.inhrelid = tree.oid
	WHERE i.inhdetachpending
)
SELECT n.nspname::text, c.relname::text, found.detaching, has_table_privilege(c.oid, 'SELECT')
FROM (SELECT oid, true FROM detaching UNION ALL SELECT oid, false FROM alike) found (oid, detaching)
JOIN pg_class c ON c.oid = found.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY 1, 2
LIMIT 100`

// lostSQL finds the first record after a position in a table that is not read, if the source's table does not have
// that record. It reads a limited number of the rows that the source's table has as well, as in a copy.
const lostSQL = `/* source.lost */
SELECT %[1]s
FROM (SELECT t.* FROM %[2]s AS t WHERE %[3]s ORDER BY %[4]s LIMIT %[5]d) AS t
WHERE (
%[6]s
)
	AND NOT EXISTS (SELECT FROM %[7]s AS s WHERE %[8]s)
ORDER BY %[4]s
LIMIT 1`

// Detached finds records after a position that are not read because their table is no longer a partition of the
// source's table. It reads at most 10,000 rows of each such table, by index range. It does not look at rows before
// the position: they may have been delivered before the DETACH.
func (s *Source) Detached(ctx context.Context, after cursor.Position) ([]Finding, error) {
	var tables [][][]byte
	err := s.ask(ctx, "look for partitions that were detached from", func(l *layout, ask asker) (err error) {
		column := l.at
		if !l.ordersByTime() {
			column = s.config.Columns.ID
		}
		parts, _ := parseName(column)
		tables, err = ask(fmt.Sprintf(detachedSQL, l.oid), []byte(parts[0]))
		return err
	})
	var findings []Finding
	var hidden []string
	for _, values := range tables {
		p := Partition{schema: string(values[0]), table: string(values[1]), Detaching: string(values[2]) == "t"}
		if string(values[3]) != "t" {
			hidden = append(hidden, p.Name())
			continue
		}
		f, err := s.lost(ctx, after, p)
		if err != nil {
			return nil, err
		}
		findings = append(findings, f...)
	}
	if n := len(hidden); n > 0 {
		findings = append(findings, finding(Note, "run doctor as the owner of these tables",
			"our role may not read tables that may have been partitions of %s (%d, the first is %s): "+
				"it is not known whether they hold records that were not delivered", s.located().Table, n, hidden[0]))
	}
	return findings, err
}

// lost returns a finding about the first record that was lost with one table.
func (s *Source) lost(ctx context.Context, after cursor.Position, p Partition) (findings []Finding, err error) {
	err = s.ask(ctx, fmt.Sprintf("look into %s, which may have been a partition of", p.Name()), func(l *layout, ask asker) error {
		args, err := l.startAfter(after)
		if err != nil {
			return err
		}
		taken := "true"
		if s.config.Where != "" {
			taken = s.config.Where
		}
		id := quote(s.config.Columns.ID)
		same := fmt.Sprintf("s.%[1]s = t.%[1]s", id)
		if l.ordersByTime() {
			same = fmt.Sprintf("(s.%[1]s, s.%[2]s) = (t.%[1]s, t.%[2]s)", quote(l.at), id)
		}
		records, err := l.found(ask(fmt.Sprintf(lostSQL, l.keys(s.config), quoted(p.schema, p.table), l.after(s.config, after == ""),
			strings.Join(l.orderBy(s.config), ", "), maxScan, taken, l.sql(), same), args...))
		if err == nil && len(records) > 0 {
			findings = []Finding{p.lostFinding(l, visible.Cut(records[0].ID))}
		}
		return err
	})
	return findings, err
}

func (p Partition) lostFinding(l *layout, id string) Finding {
	attach := fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES …", l.sql(), quoted(p.schema, p.table))
	if p.Detaching {
		return finding(Warn, fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s FINALIZE; then %s, before the cursor passes these records", l.sql(), quoted(p.schema, p.table), attach),
			"%s is being detached from %s, and holds records that were not delivered, the first is %s: they are not read any more", p.Name(), l.name(), id)
	}
	return finding(Warn, attach+", before the cursor passes these records; or deliver them by hand, and drop it",
		"%s has the columns of %s and is not a partition of it. It holds records after the cursor that %[2]s does not have, the first is %[3]s: if it was detached, they are never delivered",
		p.Name(), l.name(), id)
}
