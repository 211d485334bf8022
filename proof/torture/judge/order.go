package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// checkOrder: the first applications are the rows in their order (I3).
func (v *Verdict) checkOrder(f *feed) {
	next := map[*segment]int{}
	for _, s := range f.segments {
		next[s] = s.after + 1
	}
	first := func(key string, rank int, sequence int64) {
		s := f.segment(sequence)
		for rank > next[s] && f.aside[s][next[s]] != nil {
			next[s]++
		}
		switch {
		case rank == 0 || rank < next[s]:
			// Not in the table, or applied before: said elsewhere.
		case rank == next[s]:
			next[s]++
		default:
			v.OutOfOrder++
			v.broken("I3", f.Name, "row %d (%s) was applied before row %d", rank, key, next[s])
			next[s] = rank + 1
		}
	}
	for _, a := range f.applications() {
		first(a.Key, a.rank, a.Sequence)
	}
	for _, a := range f.applied {
		first(a.Key, f.table.byKey[a.Key], a.Sequence)
	}
}

// checkSendAhead: nothing is received before all in front of it is acknowledged or put aside (I4). The receiver notes under one lock,
// so the order of its acts is that of time.
func (v *Verdict) checkSendAhead(f *feed, slack time.Duration) {
	acknowledged := map[*segment]map[int]bool{}
	behind := map[*segment]int{} // all up to here are acknowledged
	for _, s := range f.segments {
		acknowledged[s], behind[s] = map[int]bool{}, s.after
	}
	for _, act := range f.acts {
		a := f.byID[act.ID]
		s := f.segment(a.Sequence)
		for acknowledged[s][behind[s]+1] || f.passed(s, behind[s]+1, act.T+slack) {
			behind[s]++
		}
		switch {
		case act.Act == history.Receive && a.rank > behind[s]+1:
			v.broken("I4", f.Name, "row %d (%s) was received in attempt %d before row %d was acknowledged", a.rank, a.Key, a.ID, behind[s]+1)
		case act.Act == history.Reply && a.acknowledged() && a.rank > 0:
			acknowledged[s][a.rank] = true
		}
	}
}
