package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
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

// checkKept: while the row is kept, a worker sends what was acknowledged no more often than the other faults explain (I5).
func (v *Verdict) checkKept(f *feed) {
	type sent struct {
		worker string
		epoch  int64
		rank   int
		s      *segment
	}
	for _, k := range f.keeps() {
		acknowledged := map[sent]int{}
		for _, a := range f.attempts {
			if a.T >= k.from && a.T <= k.to && a.acknowledged() {
				acknowledged[sent{a.Worker, a.Epoch, a.rank, f.segment(a.Sequence)}]++
			}
		}
		for what, n := range acknowledged {
			if most := 1 + f.disturbing(what.worker, k.from, k.to); n > most {
				v.broken("I5", f.Name, "a trigger kept the cursor from %v to %v, and worker %s sent row %d, which was acknowledged, %d times: its faults explain %d",
					k.from, k.to, what.worker, what.rank, n, most)
			}
		}
	}
}

// disturbing counts the faults that may have kept an answer from a worker in a time.
func (f *feed) disturbing(worker string, from, to time.Duration) int {
	n := 0
	for _, x := range f.faults {
		if (causes(x.Kind) || answers(x.Kind)) && (x.Worker == "" || x.Worker == worker) && x.from <= to && f.tempo.After(x.to, onTheWire) >= from {
			n++
		}
	}
	return n
}
