package judge

import "github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"

// checkOnce: an operator of one fault's own decides about one record, and does what errors say (I10). Whether an answer
// comes or not, at most that record is passed over.
func (v *Verdict) checkOnce(f *feed) {
	skips := map[string]int{}
	for _, actions := range f.actions {
		for _, a := range actions {
			if a.Kind == skip && a.Actor != history.Operator {
				skips[a.Actor]++
			}
		}
	}
	for actor, n := range skips {
		if n > 1 {
			v.broken("I10", f.Name, "%q decided to skip one record, and skipped %d", actor, n)
		}
	}
}
