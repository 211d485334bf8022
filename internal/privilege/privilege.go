package privilege

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Object is a kind of object on which rights are granted, as GRANT spells it.
type Object string

// The kinds of objects. For GRANT, views and foreign tables are tables.
const (
	Database Object = "DATABASE"
	Schema   Object = "SCHEMA"
	Table    Object = "TABLE"
	Sequence Object = "SEQUENCE"
	Function Object = "FUNCTION"
)

// Privilege is one right on one object.
type Privilege struct {
	On Object
	// Name is the name of the object, quoted and with its schema, as SQL takes it.
	Name string
	// Right is SELECT, INSERT, UPDATE, DELETE, USAGE, EXECUTE or CONNECT.
	Right string
	// Columns are the columns for which the right is needed, unquoted. nil means the whole object; empty but not nil
	// means that any one column will do.
	Columns []string
}

// compare sorts by kind, object and right.
func compare(a, b Privilege) int {
	return cmp.Or(
		cmp.Compare(rank(objects, string(a.On)), rank(objects, string(b.On))),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(rank(rights, a.Right), rank(rights, b.Right)),
	)
}

// The objects that a role meets first come first.
var (
	objects = []string{string(Database), string(Schema), string(Table), string(Sequence), string(Function)}
	rights  = []string{"CONNECT", "USAGE", "EXECUTE", "SELECT", "INSERT", "UPDATE", "DELETE"}
)

func rank(order []string, name string) int { return slices.Index(order, name) }

// Merge returns each right on each object once, with the columns of all, sorted. Two that name columns become one
// with both; a right on the whole object makes columns superfluous.
func Merge(privileges []Privilege) []Privilege {
	all := slices.Clone(privileges)
	slices.SortStableFunc(all, compare)
	var merged []Privilege
	for _, p := range all {
		p.Columns = union(p.Columns, p.Columns)
		if n := len(merged); n > 0 && compare(merged[n-1], p) == 0 {
			merged[n-1].Columns = union(merged[n-1].Columns, p.Columns)
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	columns := append(append([]string{}, a...), b...)
	slices.Sort(columns)
	return slices.Compact(columns)
}

// ByObject returns the result of Merge in groups: one for each object.
func ByObject(privileges []Privilege) [][]Privilege {
	var groups [][]Privilege
	for _, p := range Merge(privileges) {
		if n := len(groups); n > 0 && groups[n-1][0].Same(p) {
			groups[n-1] = append(groups[n-1], p)
			continue
		}
		groups = append(groups, []Privilege{p})
	}
	return groups
}

// Same reports whether two are on the same object.
func (p Privilege) Same(other Privilege) bool { return p.On == other.On && p.Name == other.Name }

var quotedName = regexp.MustCompile(`"(?:[^"]|"")*"`)

// Masked returns the privilege with what mask makes of each name. So its grant stays one command, with whole names.
func (p Privilege) Masked(mask func(string) string) Privilege {
	// The mark of the end is no part of a name: where a secret only begins with the whole name, mask leaves it.
	const end = `"`
	masked := func(name string) string { return strings.TrimSuffix(mask(name+end), end) }
	p.Name = quotedName.ReplaceAllStringFunc(p.Name, func(quoted string) string {
		return pgx.Identifier{masked(strings.ReplaceAll(quoted[1:len(quoted)-1], `""`, `"`))}.Sanitize()
	})
	p.Columns = slices.Clone(p.Columns)
	for i, name := range p.Columns {
		p.Columns[i] = masked(name)
	}
	return p
}

// Grant returns the command that gives a role several privileges on one object. It is one line, whatever the names
// contain.
func Grant(role string, privileges ...Privilege) string {
	given := make([]string, len(privileges))
	for i, p := range privileges {
		given[i] = p.String()
	}
	name := privileges[0].Name
	if on := privileges[0].On; on != Table { // the word TABLE is left out, as most people do
		name = string(on) + " " + name
	}
	return visible.SQL("GRANT " + strings.Join(given, ", ") + " ON " + name + " TO " + pgx.Identifier{role}.Sanitize())
}

// String returns the right with its columns, as GRANT spells it. If any column will do, it is the right to all: it is
// not known which one the owner would rather grant.
func (p Privilege) String() string {
	if len(p.Columns) == 0 {
		return p.Right
	}
	columns := make([]string, len(p.Columns))
	for i, name := range p.Columns {
		columns[i] = pgx.Identifier{name}.Sanitize()
	}
	return p.Right + " (" + strings.Join(columns, ", ") + ")"
}
