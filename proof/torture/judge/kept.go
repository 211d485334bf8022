package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// keep finds a trigger that kept the row while a was on its way, so that the advance behind it stayed owed: a worker that
// knows of no debt, in another epoch, sends the record once more. Each keep explains that once for a row.
func (f *feed) keep(a, b *attempt) *fault {
	for _, k := range f.keeps() {
		if a.Epoch == b.Epoch || k.ranks[f.Name][a.rank] || a.T < k.from-onTheWire || a.T > f.tempo.After(k.to, onTheWire) {
			continue
		}
		if k.ranks[f.Name] == nil {
			k.ranks[f.Name] = map[int]bool{}
		}
		if len(k.ranks[f.Name]) < f.Checkpoint {
			k.ranks[f.Name][a.rank] = true
			return k
		}
	}
	return nil
}

// keeps are the times in which a trigger kept the row of the process.
func (f *feed) keeps() []*fault {
	var all []*fault
	for _, c := range f.faults {
		if c.Kind == history.KeptAdvance {
			all = append(all, c)
		}
	}
	return all
}

// checkKept: while the row is kept, a worker sends nothing again that was acknowledged, unless a fault kept that answer from
// it (I5). It has the same epoch as long as it lives, and what it remembers no other fault takes from it.
func (v *Verdict) checkKept(f *feed) {
	type sent struct {
		epoch int64
		rank  int
		s     *segment
	}
	for _, k := range f.keeps() {
		before := map[sent]*attempt{}
		for _, b := range f.attempts {
			if b.T < k.from || b.T > k.to || !b.acknowledged() {
				continue
			}
			what := sent{b.Epoch, b.rank, f.segment(b.Sequence)}
			if a := before[what]; a != nil && !f.unheard(a, b.T) {
				v.broken("I5", f.Name, "a trigger kept the cursor from %v to %v, and worker %s sent row %d (%s) in attempt %d at %v, which was acknowledged, and again in attempt %d at %v",
					k.from, k.to, b.Worker, b.rank, b.Key, a.ID, a.T, b.ID, b.T)
			}
			before[what] = b
		}
	}
}

// unheard reports whether a fault may have kept the answer to an attempt from its worker, which tried again at some time.
// Where the link to the receiver was stalled, both arrive when it is not any more.
func (f *feed) unheard(a *attempt, again time.Duration) bool {
	for _, x := range f.faults {
		if answers(x.Kind) && a.Fault == x.ID {
			return true
		}
		to := x.to
		if x.Kind == history.StallReceiver {
			to = f.tempo.After(to, onTheWire)
		}
		if causes(x.Kind) && (x.Worker == "" || x.Worker == a.Worker) && x.from <= again && to >= a.T {
			return true
		}
	}
	return false
}
