package table

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// oldestSample is the most rows of one time that InspectOldest counts.
const oldestSample = 1000

// InspectOldest warns if the first rows of the table have no order among themselves: they share one created_at, although
// the default stamps each row by itself, and their ids do not grow. This is so after the column was added to a table
// with rows. It matters only to a process that starts at the beginning and has delivered nothing yet. It returns an
// error if the database did not answer.
func (s *Source) InspectOldest(ctx context.Context) ([]Finding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil || !l.ordersByTime() || l.stamp != stampAfterLock || l.kind == kindAtInt {
		return nil, err
	}
	e := rowExamination{examination: examination{config: s.config}, layout: l}
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var alike int
		if err := tx.QueryRow(ctx, e.oldestSQL(), pgx.QueryExecModeExec).Scan(&alike); err != nil || alike < 2 {
			return err
		}
		columns, err := collect[column](ctx, tx, columnsSQL, l.oid)
		if err != nil {
			return err
		}
		e.cat = &catalog{columns: map[string]column{}}
		for _, c := range columns {
			e.cat.columns[c.Name] = c
		}
		count := fmt.Sprint(alike)
		if alike == oldestSample {
			count += " or more"
		}
		e.warn(e.orderOld(l), "the first rows of %s, %s, have one %s. They come in the order of their ids, which are of type %s: unless those grow, this is a random order",
			e.name(), count, quote(e.at), e.idType)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inspect the first rows of %s: %w", l.name(), lasting(err))
	}
	return e.plain(), nil
}

func (e *rowExamination) oldestSQL() string {
	return fmt.Sprintf(`/* source.oldest */
WITH first AS (
	SELECT t.%[1]s AS at
	FROM %[2]s AS t
	WHERE %[3]s
	ORDER BY %[4]s
	LIMIT 1
)
SELECT count(*)::int
FROM (SELECT FROM %[2]s AS t WHERE t.%[1]s = (SELECT at FROM first) AND %[3]s LIMIT %[5]d) alike`,
		quote(e.at), e.sql(), e.layout.behind(e.config, true), strings.Join(e.orderBy(e.config), ", "), oldestSample)
}

// unorderedOld is what becomes of the rows that a table has when it gets the column of the order; "" if their ids grow.
func (e *examination) unorderedOld() string {
	id, _ := parseName(e.config.Columns.ID)
	c, ok := e.cat.columns[id[0]]
	if !ok || e.config.Order != CreatedAt || idKinds[c.Type] == kindAtInt {
		return ""
	}
	return fmt.Sprintf("the rows that %s holds get one time. They come in the order of their ids, which are of type %s: unless those grow, this is a random order",
		e.cat.schema+"."+e.cat.table, c.Type)
}

// orderOld is what to do about rows that share one time, before a process delivers them. It names the columns that may
// have their time.
func (e *examination) orderOld(l *layout) string {
	const other = "or begin after them, with start: end"
	at := e.config.Columns.CreatedAt
	if at == "" {
		at = knownCreatedAt
	}
	var values []string
	parsed, _ := parseName(at)
	for _, name := range slices.Sorted(maps.Keys(e.cat.columns)) {
		column := pgx.Identifier{name}.Sanitize()
		switch e.cat.columns[name].Type {
		case "timestamp with time zone":
			if name != parsed[0] {
				values = append(values, column)
			}
		case "timestamp without time zone":
			values = append(values, column+" AT TIME ZONE 'the zone of its values'")
		case "date":
			values = append(values, column+"::timestamp AT TIME ZONE 'the zone of its values'")
		}
	}
	if len(values) == 0 {
		return fmt.Sprintf("if their order matters, set %s of these rows before the process first runs, each to its own time; %s", quote(at), other)
	}
	from := ""
	if len(values) > 1 {
		from = "; -- or = " + strings.Join(values[1:], ", or = ")
	}
	return fmt.Sprintf("if their order matters, before the process first runs: UPDATE %s SET %s = %s WHERE %[2]s = (SELECT min(%[2]s) FROM %[1]s)%[4]s; %[5]s",
		l.sql(), quote(at), values[0], from, other)
}
