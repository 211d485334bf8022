package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// checkTarget is checkReason for a sink that writes to another database. No receiver saw an attempt: what was put aside needs
// a time in which the target refused records, and what was replayed is there. That it is there once is I5.
func (v *Verdict) checkTarget(f *feed, l *letter) {
	if !f.Letters || !f.refusedByTarget(l.at) {
		v.broken("I10", f.Name, "row %d (%s) was put aside at %v, and the target refused nothing then", l.rank, l.Key, l.at)
	}
	if l.Resolution != "replayed" {
		return
	}
	v.ReplayedLetters++
	for _, a := range f.applied {
		if a.Sequence == l.Sequence {
			return
		}
	}
	v.broken("I1", f.Name, "row %d (%s) was put aside and replayed, and the target does not have it", l.rank, l.Key)
}

// refusedByTarget reports whether the target of a sql sink refused records at some time, or shortly before.
func (f *feed) refusedByTarget(at time.Duration) bool {
	for _, x := range f.faults {
		if x.Kind == history.TargetRefuses && x.from <= at && f.tempo.After(x.to, onTheWire) >= at {
			return true
		}
	}
	return false
}
