package privilege

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// mention matches the part of a query tree, as pg_proc stores it, about a relation: its oid, and after it the checks.
// That is a range table entry in PostgreSQL 14 and 15, and an entry of its own since. Spaces within names are escaped
// there, so no name looks like this. TestOf_NamesWhatTheServerChecks checks it for every version.
//
// The recorded dependencies of a function are documented, but they tell neither a right from another nor the whole row
// from any column: TestOf_KnowsWhatDependenciesDoNot.
var mention = regexp.MustCompile(`:relid (\d+) |:requiredPerms (\d+) :checkAsUser \d+ ` +
	`:selectedCols \(b([ \d]*)\) :insertedCols \(b([ \d]*)\) :updatedCols \(b([ \d]*)\)`)

// perms are the bits of requiredPerms, from the lowest, with the group of mention that holds the columns of the right.
var perms = []struct {
	right   string
	columns int // 0: the right has none
}{{"INSERT", 4}, {"SELECT", 3}, {"UPDATE", 5}, {"DELETE", 0}}

// wholeRow is the member for the whole row in a set of columns. The members exceed the columns' numbers by it.
const wholeRow = "7"

// checks are what the server will check: a right on columns of a relation at each index.
type checks struct {
	relations       []uint32
	rights, columns []string // the columns as an array of PostgreSQL, of the members of a set; none: any column
}

// errTree: it is better to give no answer than a wrong one.
var errTree = errors.New("ordered-dispatcher cannot read how this version of the server describes statements")

func parseTree(tree string) (checks checks, err error) {
	var relation uint64
	known := 0
	for _, found := range mention.FindAllStringSubmatch(tree, -1) {
		if found[1] != "" {
			if relation, err = strconv.ParseUint(found[1], 10, 32); err != nil {
				return checks, err
			}
			continue
		}
		known++
		bits, err := strconv.ParseUint(found[2], 10, 64)
		if err != nil || bits>>len(perms) != 0 {
			return checks, errTree
		}
		for i, p := range perms {
			if bits>>i&1 == 0 {
				continue
			}
			members := wholeRow
			if p.columns != 0 {
				members = strings.Join(strings.Fields(found[p.columns]), ",")
			}
			checks.relations = append(checks.relations, uint32(relation))
			checks.rights = append(checks.rights, p.right)
			checks.columns = append(checks.columns, "{"+members+"}")
		}
	}
	if known != strings.Count(tree, ":requiredPerms ") {
		return checks, errTree
	}
	return checks, nil
}
