package judge

import (
	"cmp"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// loads counts the rows of each way to write, in the order of their names.
func loads(writes []history.Write, tables map[string]*table) []Load {
	byName := map[string]*Load{}
	var all []*Load
	for _, w := range writes {
		if w.Step != history.Insert {
			continue
		}
		l := byName[w.Load]
		if l == nil {
			l = &Load{Name: w.Load}
			byName[w.Load], all = l, append(all, l)
		}
		if t := tables[w.Table]; t != nil && t.byKey[w.Key] > 0 {
			l.Kept++
		} else {
			l.RolledBack++
		}
	}
	slices.SortFunc(all, func(a, b *Load) int { return cmp.Compare(a.Name, b.Name) })
	sorted := make([]Load, len(all))
	for i, l := range all {
		sorted[i] = *l
	}
	return sorted
}
