package privilege

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Object is a kind of thing that rights are granted on, as GRANT spells it.
type Object string

// The kinds of objects. Views and foreign tables are tables to GRANT.
const (
	Database Object = "DATABASE"
	Schema   Object = "SCHEMA"
	Table    Object = "TABLE"
	Sequence Object = "SEQUENCE"
	Function Object = "FUNCTION"
)

// Privilege is what one right gives.
type Privilege struct {
	On Object
	// Name of the object, quoted and with its schema, as SQL takes it.
	Name string
	// Right is SELECT, INSERT, UPDATE, DELETE, USAGE, EXECUTE or CONNECT.
	Right string
	// Columns that the right is needed for, unquoted; nil for the whole object,
	// and none but not nil where any one column will do.
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

// What a role meets first comes first.
var (
	objects = []string{string(Database), string(Schema), string(Table), string(Sequence), string(Function)}
	rights  = []string{"CONNECT", "USAGE", "EXECUTE", "SELECT", "INSERT", "UPDATE", "DELETE"}
)

func rank(order []string, name string) int { return slices.Index(order, name) }

// Merge returns each right on each object once, with the columns of all, sorted:
// two that name columns make one of both, and the whole object makes the columns
// superfluous.
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

// ByObject is Merge in groups: one for each object.
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

// Grant is the command that gives a role several privileges on one object. It is one
// line, whatever the names hold.
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

// String is the right with its columns, as GRANT spells it. Where any column will
// do it is that to all: which one would be missed least is not known.
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
