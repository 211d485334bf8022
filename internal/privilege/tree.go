package privilege

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// mention matches the part of a query tree, as pg_proc stores it, about a relation: its oid, and after it the checks.
// That is a range table entry in PostgreSQL 14 and 15, and an entry of its own since. Spaces within names are escaped
// there, so no name looks like this. TestOf_NamesWhatTheServerChecks checks it for every version.
var mention = regexp.MustCompile(`:relid (\d+) |:requiredPerms (\d+) :checkAsUser \d+ ` +
	`:selectedCols \(b([ \d]*)\) :insertedCols \(b([ \d]*)\) :updatedCols \(b([ \d]*)\)`)

// entry holds what will be checked of one relation.
type entry struct {
	relation uint32
	rights   []entryRight
}

type entryRight struct {
	right   string
	columns []int16 // their numbers; none: any column
	whole   bool
}

// perms are the bits of requiredPerms, with the group of mention that holds the columns of the right.
var perms = []struct {
	bit     uint64
	right   string
	columns int // 0: the right has none
}{
	{1 << 1, "SELECT", 3},
	{1 << 0, "INSERT", 4},
	{1 << 2, "UPDATE", 5},
	{1 << 3, "DELETE", 0},
}

// columnOffset is how much the members of a set of columns exceed the columns' numbers, of which 0 is the whole row.
const columnOffset = 7

// errTree: it is better to give no answer than a wrong one.
var errTree = errors.New("this version of the server describes statements in a way that is not known here")

const treeSQL = `/* privilege.tree */ SELECT prosqlbody::text FROM pg_catalog.pg_proc WHERE oid = $1`

func readTree(ctx context.Context, tx pgx.Tx, function uint32) ([]entry, error) {
	var tree string
	if err := tx.QueryRow(ctx, treeSQL, pgx.QueryExecModeExec, function).Scan(&tree); err != nil {
		return nil, err
	}
	return parseTree(tree)
}

func parseTree(tree string) ([]entry, error) {
	var entries []entry
	var relation uint64
	checks := 0
	for _, found := range mention.FindAllStringSubmatch(tree, -1) {
		var err error
		if found[1] != "" {
			if relation, err = strconv.ParseUint(found[1], 10, 32); err != nil {
				return nil, err
			}
			continue
		}
		checks++
		rights, err := parseRights(found)
		if err != nil {
			return nil, err
		}
		if len(rights) > 0 { // a subquery has none
			entries = append(entries, entry{uint32(relation), rights})
		}
	}
	if checks != strings.Count(tree, ":requiredPerms ") {
		return nil, errTree
	}
	return entries, nil
}

func parseRights(found []string) ([]entryRight, error) {
	bits, err := strconv.ParseUint(found[2], 10, 64)
	if err != nil {
		return nil, err
	}
	var rights []entryRight
	for _, p := range perms {
		if bits&p.bit == 0 {
			continue
		}
		bits &^= p.bit
		r := entryRight{right: p.right, whole: p.columns == 0}
		if !r.whole {
			if r.columns, err = parseColumns(found[p.columns]); err != nil {
				return nil, err
			}
			r.whole = slices.Contains(r.columns, 0)
		}
		rights = append(rights, r)
	}
	if bits != 0 {
		return nil, errTree
	}
	return rights, nil
}

func parseColumns(set string) ([]int16, error) {
	var columns []int16
	for _, member := range strings.Fields(set) {
		n, err := strconv.ParseInt(member, 10, 16)
		if err != nil {
			return nil, err
		}
		columns = append(columns, int16(n)-columnOffset)
	}
	return columns, nil
}

const relationSQL = `/* privilege.relation */
SELECT n.nspname::text, c.relname::text, EXISTS (
	SELECT 1
	FROM pg_catalog.pg_trigger t
	JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
	WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND NOT p.prosecdef
)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = $1`

const columnsSQL = `/* privilege.columns */
SELECT attname::text
FROM pg_catalog.pg_attribute
WHERE attrelid = $1 AND attnum = ANY ($2::smallint[])
LIMIT 2000`

// needs replaces the numbers by names.
func (e entry) needs(ctx context.Context, tx pgx.Tx) (Needs, error) {
	var needs Needs
	var schema, table string
	var triggers bool
	if err := tx.QueryRow(ctx, relationSQL, pgx.QueryExecModeExec, e.relation).Scan(&schema, &table, &triggers); err != nil {
		return needs, err
	}
	name := pgx.Identifier{schema, table}.Sanitize()
	for _, r := range e.rights {
		p := Privilege{On: Table, Name: name, Right: r.right}
		if !r.whole {
			var err error
			if p.Columns, err = texts(ctx, tx, columnsSQL, e.relation, r.columns); err != nil {
				return needs, err
			}
		}
		needs.Privileges = append(needs.Privileges, p)
		if r.right == "INSERT" {
			if err := e.defaults(ctx, tx, r, &needs); err != nil {
				return needs, err
			}
		}
		if triggers && r.right != "SELECT" {
			needs.BlindSpots = append(needs.BlindSpots, "triggers of "+name)
		}
	}
	return needs, nil
}

// sequencesSQL lists the sequences that fill the columns which an INSERT does not name. The sequences of identity
// columns need no grant, and do not belong to a default.
const sequencesSQL = `/* privilege.sequences */
SELECT DISTINCT format('"%s"."%s"', replace(n.nspname, '"', '""'), replace(s.relname, '"', '""'))
FROM pg_catalog.pg_attrdef a
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass
JOIN pg_catalog.pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
JOIN pg_catalog.pg_namespace n ON n.oid = s.relnamespace
WHERE a.adrelid = $1 AND a.adnum <> ALL ($2::smallint[])
LIMIT 2000`

func (e entry) defaults(ctx context.Context, tx pgx.Tx, inserted entryRight, needs *Needs) error {
	sequences, err := texts(ctx, tx, sequencesSQL, e.relation, inserted.columns)
	for _, name := range sequences {
		needs.Privileges = append(needs.Privileges, Privilege{On: Sequence, Name: name, Right: "USAGE"})
	}
	return err
}

// texts returns the one column of a query. It never returns nil.
func texts(ctx context.Context, tx pgx.Tx, sql string, relation uint32, columns []int16) ([]string, error) {
	if columns == nil {
		columns = []int16{} // NULL is not an empty array
	}
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec, relation, columns)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
