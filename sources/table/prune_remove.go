package table

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Removed are the rows that a statement removed.
type Removed struct {
	Rows int64
	// Through are the last positions, for each order in which a process reads the table: see Source.Ordering.
	Through map[string]cursor.Position
	// Tables are the oids of the tables that had the rows: the source's, and those below it.
	Tables []uint32
	// Contents are the rows as JSON, in no order; only Take returns them.
	Contents [][]byte
}

const deleteSQL = `/* source.prune */
DELETE FROM %s AS t
WHERE %s
RETURNING %s`

// Delete deletes the rows of a stretch.
func (p *Pruning) Delete(ctx context.Context, tx pgx.Tx, s Stretch) (Removed, error) {
	return p.remove(ctx, tx, s, "", func(where string) string { return fmt.Sprintf(deleteSQL, p.layout.sql(), where, p.keys()) })
}

// Take is Delete that returns the rows.
func (p *Pruning) Take(ctx context.Context, tx pgx.Tx, s Stretch) (Removed, error) {
	return p.remove(ctx, tx, s, "", func(where string) string {
		return fmt.Sprintf(deleteSQL, p.layout.sql(), where, p.keys()+", row_to_json(t.*)::text")
	})
}

// keys are the columns that removed reads.
func (p *Pruning) keys() string {
	var all []string
	for _, o := range p.orders {
		all = append(all, o.layout.keys(o.Source.config))
	}
	return strings.Join(append(all, p.member), ", ")
}

// remove runs a statement on the rows of a stretch that may go. Among those of a mark, it is for those that are free.
func (p *Pruning) remove(ctx context.Context, tx pgx.Tx, s Stretch, free string, statement func(where string) string) (Removed, error) {
	var v values
	where, err := p.within(&v, s)
	if err != nil {
		return Removed{}, err
	}
	if free != "" {
		where += "\n\tAND " + free
	}
	result, err := run(ctx, tx, statement(where), v)
	if err != nil {
		return Removed{}, err
	}
	r, err := p.removed(result.Rows)
	if err == nil && (free != "" || r.Rows < int64(s.Rows)) {
		err = p.gone(ctx, tx, s, where, v)
	}
	return r, err
}

const keptSQL = `/* source.kept */ SELECT count(*) FROM %s AS t WHERE %s`

// gone returns an error if rows are still there that a statement was to remove: a trigger that returns NULL keeps a row
// without an error, and every later pass would end with that row. Rows that another session removed meanwhile are gone.
func (p *Pruning) gone(ctx context.Context, tx pgx.Tx, s Stretch, where string, v values) error {
	result, err := run(ctx, tx, fmt.Sprintf(keptSQL, p.layout.sql(), where), v)
	if err != nil {
		return err
	}
	if kept := string(result.Rows[0][0]); kept != "0" {
		return fmt.Errorf("a trigger or a rule (CREATE RULE) of %s kept %s of %d rows as they are, so none of them was removed: "+
			"let it pass them, or remove the rule of retention", p.Table(), kept, s.Rows)
	}
	return nil
}

// removed reads what a statement returned: the keys, and what follows them.
func (p *Pruning) removed(rows [][][]byte) (r Removed, err error) {
	through := map[string]cursor.Position{}
	for _, values := range rows {
		for i, o := range p.orders {
			record, err := o.layout.record(values[2*i : 2*i+2])
			if err != nil {
				return Removed{}, err
			}
			order := o.ordering()
			through[order] = max(through[order], record.Position)
		}
		rest := values[2*len(p.orders):]
		member, err := strconv.ParseUint(string(rest[0]), 10, 32)
		if err != nil {
			return Removed{}, err
		}
		if !slices.Contains(r.Tables, uint32(member)) {
			r.Tables = append(r.Tables, uint32(member))
		}
		if len(rest) > 1 {
			r.Contents = append(r.Contents, bytes.Clone(rest[1]))
		}
		r.Rows++
	}
	if r.Rows > 0 {
		r.Through = through
	}
	return r, nil
}

const contentsSQL = `/* source.contents */
SELECT row_to_json(t.*)::text
FROM %s AS t
WHERE %s
ORDER BY %s`

// Contents returns the rows of a stretch as JSON, in order.
func (p *Pruning) Contents(ctx context.Context, tx pgx.Tx, s Stretch) (rows [][]byte, err error) {
	var v values
	where, err := p.within(&v, s)
	if err != nil {
		return nil, err
	}
	result, err := run(ctx, tx, fmt.Sprintf(contentsSQL, p.layout.sql(), where, strings.Join(p.layout.orderBy(p.source.config), ", ")), v)
	if err != nil {
		return nil, err
	}
	for _, values := range result.Rows {
		rows = append(rows, values[0])
	}
	return rows, nil
}

const columnTypesSQL = `/* source.column_types */
SELECT a.attname::text, format_type(a.atttypid, NULL), a.attnotnull
FROM pg_attribute a
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
LIMIT 2000`

// writable is a column of the table that can be written.
type writable struct {
	name, kind string
	required   bool
}

func (p *Pruning) columns(ctx context.Context, tx pgx.Tx) (all []writable, err error) {
	result, err := run(ctx, tx, columnTypesSQL, values{[]byte(fmt.Sprint(p.layout.oid))})
	if err != nil {
		return nil, err
	}
	for _, values := range result.Rows {
		all = append(all, writable{string(values[0]), string(values[1]), string(values[2]) == "t"})
	}
	return all, nil
}

// find returns the column that a name means, as in SQL.
func (p *Pruning) find(ctx context.Context, tx pgx.Tx, name string) (writable, error) {
	all, err := p.columns(ctx, tx)
	if err != nil {
		return writable{}, err
	}
	parts, err := parseName(name)
	if err != nil || len(parts) != 1 {
		return writable{}, fmt.Errorf("%q is not the name of a column", name)
	}
	i := slices.IndexFunc(all, func(c writable) bool { return c.name == parts[0] })
	if i < 0 {
		return writable{}, fmt.Errorf("%s has no column %s that can be written", p.Table(), name)
	}
	return all[i], nil
}

const markRowsSQL = `/* source.mark */
UPDATE %s AS t
SET %s = %s
WHERE %s
RETURNING %s`

// Mark marks the rows of a stretch as deleted: a column of type boolean becomes true, one of a time becomes the
// present time. Rows that are marked stay as they are.
func (p *Pruning) Mark(ctx context.Context, tx pgx.Tx, s Stretch, name string) (Removed, error) {
	m, err := p.marking(ctx, tx, name)
	if err != nil {
		return Removed{}, err
	}
	return p.remove(ctx, tx, s, m.free, func(where string) string {
		return fmt.Sprintf(markRowsSQL, p.layout.sql(), m.column, m.value, where, p.keys())
	})
}

// markedSQL goes back from a position, by the index, over rows that are not marked.
const markedSQL = `/* source.marked */
SELECT %s
FROM %s AS t
WHERE (%s) <= (%s) AND NOT (%s)
ORDER BY %s DESC
LIMIT 1`

// Marked returns the position of the last row that is marked, at a position or before it; "" if there is none.
func (p *Pruning) Marked(ctx context.Context, tx pgx.Tx, name string, upTo cursor.Position) (cursor.Position, error) {
	m, err := p.marking(ctx, tx, name)
	if err != nil {
		return "", err
	}
	l, c := p.layout, p.source.config
	k, err := l.kind.parse(upTo)
	if err != nil {
		return "", err
	}
	var v values
	tuple, order := l.tuple(v.add(l.arguments(k)...)), l.orderBy(c)
	found, err := run(ctx, tx, fmt.Sprintf(markedSQL, l.keys(c), l.sql(), strings.Join(order, ", "), tuple, m.free, strings.Join(order, " DESC, ")), v)
	if err != nil || len(found.Rows) == 0 {
		return "", err
	}
	record, err := l.record(found.Rows[0])
	return record.Position, err
}

// marking is the SQL of a column that Mark sets, of the value that it gets, and of the condition that it is not set.
type marking struct{ column, value, free string }

func (p *Pruning) marking(ctx context.Context, tx pgx.Tx, name string) (marking, error) {
	c, err := p.find(ctx, tx, name)
	if err != nil {
		return marking{}, err
	}
	column := pgx.Identifier{c.name}.Sanitize()
	switch c.kind {
	case "boolean":
		return marking{column, "true", fmt.Sprintf("t.%s IS NOT TRUE", column)}, nil
	case "timestamp with time zone", "timestamp without time zone":
		return marking{column, "clock_timestamp()", fmt.Sprintf("t.%s IS NULL", column)}, nil
	default:
		return marking{}, fmt.Errorf("column %s of %s is a %s: to mark rows it must be a timestamptz or a boolean", name, p.Table(), c.kind)
	}
}

const archiveSQL = `/* source.archive */
WITH gone AS (
	DELETE FROM %s AS t
	WHERE %s
	RETURNING t.*, t.tableoid
), kept AS (
	INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE
	SELECT %[4]s FROM gone
	RETURNING 1
)
SELECT %[5]s, (SELECT count(*) FROM kept)::text
FROM gone AS t`

// Archive moves the rows of a stretch into a table that has the columns of this one, perhaps more.
func (p *Pruning) Archive(ctx context.Context, tx pgx.Tx, s Stretch, into string) (Removed, error) {
	parts, err := parseName(into)
	if err != nil {
		return Removed{}, err
	}
	columns, err := p.columns(ctx, tx)
	if err != nil {
		return Removed{}, err
	}
	var names []string
	for _, c := range columns {
		names = append(names, pgx.Identifier{c.name}.Sanitize())
	}
	removed, err := p.remove(ctx, tx, s, "", func(where string) string {
		return fmt.Sprintf(archiveSQL, p.layout.sql(), where, pgx.Identifier(parts).Sanitize(), strings.Join(names, ", "), p.keys())
	})
	if err != nil {
		return Removed{}, err
	}
	if removed.Rows > 0 && string(removed.Contents[0]) != strconv.FormatInt(removed.Rows, 10) {
		return Removed{}, fmt.Errorf("%s took %s of %d rows: a trigger, a rule or a policy on it drops the others, so nothing was removed", into, removed.Contents[0], removed.Rows)
	}
	removed.Contents = nil
	return removed, nil
}
