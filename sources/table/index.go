package table

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// unique looks for proof that no two rows have one position: a unique index of all rows, over columns of the position
// alone. Both columns are NOT NULL, so NULLs do not matter. Nor does it matter whether the index is deferrable, since
// it holds at each commit. Without proof, a read watches for such rows: see tie.
func (e *examination) unique(l *layout) {
	if l.ordersByTime() && l.at == "" {
		return
	}
	id, _ := parseName(e.config.Columns.ID)
	if _, ok := e.cat.columns[id[0]]; !ok {
		return
	}
	position := []string{id[0]}
	if l.ordersByTime() {
		at, _ := parseName(l.at)
		position = []string{at[0], id[0]}
	}
	outside := func(c string) bool { return !slices.Contains(position, c) }
	within := func(i index) bool { return !slices.ContainsFunc(i.Columns, outside) }
	if !e.heirs() && slices.ContainsFunc(e.cat.indexes, within) {
		return
	}
	l.shared = true
	if !l.ordersByTime() || e.heirs() || slices.ContainsFunc(e.cat.partitionKeys, outside) {
		return // a sequence makes the ids, or no index could prove it
	}
	columns := []string{pgx.Identifier(id).Sanitize()}
	for _, key := range e.cat.partitionKeys {
		if key != id[0] {
			columns = append(columns, pgx.Identifier{key}.Sanitize())
		}
	}
	e.find(e.unindexed(l, "UNIQUE INDEX", strings.Join(columns, ", "), fmt.Sprintf(
		"nothing keeps (%s) of %s unique: two rows with the same values would stop the process, since the second would be passed over",
		strings.Join(position, ", "), l.name())))
	e.untied = len(e.findings)
}

// holdsRows reports whether rows of the source are in the table or below it.
func (m member) holdsRows() bool { return !m.Above && m.Kind != "v" }

// heirs reports whether other tables inherit from this one. Then an index holds the rows of only one of them.
func (e *examination) heirs() bool {
	own := 0
	for _, m := range e.cat.members {
		if m.holdsRows() {
			own++
		}
	}
	return e.cat.relkind != "p" && own > 1
}

// createIndex returns the SQL that makes an index without blocking writers, as a proposal and statement by statement.
func (e *examination) createIndex(l *layout, what, columns string) (fix string, statements []string) {
	switch {
	case e.cat.relkind == "p":
		return e.createIndexOfPartitions(what, columns)
	case e.heirs():
		for _, m := range e.cat.members {
			if m.holdsRows() {
				statements = append(statements, fmt.Sprintf("CREATE %s CONCURRENTLY ON %s (%s)", what, m.Name, columns))
			}
		}
		return fmt.Sprintf("CREATE %s CONCURRENTLY ON %s (%s), and the same on each table that inherits from it", what, l.sql(), columns), statements
	default:
		fix = fmt.Sprintf("CREATE %s CONCURRENTLY ON %s (%s)", what, l.sql(), columns)
		return fix, []string{fix}
	}
}

// mostPartitions is how many partitions a proposal lists.
const mostPartitions = 50

// createIndexOfPartitions returns SQL that makes the index of each partition concurrently and attaches it. The index
// of a partitioned table holds nothing itself, and is valid as soon as all of its partitions have theirs. PostgreSQL
// cannot build that index concurrently by itself.
func (e *examination) createIndexOfPartitions(what, columns string) (fix string, statements []string) {
	indexes := map[string]string{} // by the name of the table
	for _, m := range e.cat.members {
		if m.holdsRows() {
			indexes[m.Name] = quoted(m.Schema, indexName(m.Table, what))
		}
	}
	var steps, attach []string
	for _, m := range e.cat.members {
		if !m.holdsRows() {
			continue
		}
		how, on := " CONCURRENTLY", m.Name
		if m.Kind == "p" {
			how, on = "", "ONLY "+m.Name
		}
		steps = append(steps, fmt.Sprintf("CREATE %s%s %s ON %s (%s)", what, how, quoted(indexName(m.Table, what)), on, columns))
		if parent := indexes[m.Parent]; parent != "" {
			attach = append(attach, fmt.Sprintf("ALTER INDEX %s ATTACH PARTITION %s", parent, indexes[m.Name]))
		}
	}
	statements = slices.Concat(steps, attach)
	if n := len(steps); n > mostPartitions {
		more := fmt.Sprintf("-- and the same for the other %d partitions", n-mostPartitions)
		steps, attach = steps[:mostPartitions], append(slices.Clone(attach[:mostPartitions-1]), more)
	}
	return strings.Join(slices.Concat(steps, attach), ";\n"), statements
}

// unindexed finds that an index is missing.
func (e *examination) unindexed(l *layout, what, columns, problem string) fault {
	fix, statements := e.createIndex(l, what, columns)
	return fault{Finding: finding(Warn, fix, "%s", problem), statements: statements}
}

func quoted(names ...string) string { return pgx.Identifier(names).Sanitize() }

// maxName is how much of a name PostgreSQL keeps, in bytes.
const maxName = 63

// indexName returns a name for one table's index. PostgreSQL's cut does not make two long names equal.
func indexName(table, what string) string {
	suffix := "_dispatch_order"
	if what != "INDEX" {
		suffix = "_dispatch_unique"
	}
	if len(table)+len(suffix) <= maxName {
		return table + suffix
	}
	sum := fmt.Sprintf("_%08x", crc32.ChecksumIEEE([]byte(table)))
	return strings.ToValidUTF8(table[:maxName-len(suffix)-len(sum)], "") + sum + suffix
}

// unordered warns that no index gives the order. If nothing keeps positions unique either, one index does both.
func (e *examination) unordered(l *layout) {
	order := strings.ReplaceAll(strings.Join(l.orderBy(e.config), ", "), "t.", "")
	problem := fmt.Sprintf("no index of %s gives the order (%s): every read sorts all rows after the cursor", l.name(), order)
	if e.untied == 0 {
		e.find(e.unindexed(l, "INDEX", order, problem))
		return
	}
	untied := &e.findings[e.untied-1]
	*untied = e.unindexed(l, "UNIQUE INDEX", order, problem+"; and "+untied.Problem)
}
