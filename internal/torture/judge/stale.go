package judge

import "github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"

// checkStale judges what was received under an epoch below one already seen (I6, I8).
func (v *Verdict) checkStale(f *feed) {
	var epoch int64
	highest := 0    // row applied so far in the newest segment
	var at *segment // the newest that was seen
	for _, act := range f.acts {
		a := f.byID[act.ID]
		switch act.Act {
		case history.Receive:
			if a.Epoch < epoch {
				v.stale(f, a, epoch)
			}
			if s := f.segment(a.Sequence); at == nil || s.sequence > at.sequence {
				at, highest = s, s.after
			}
			epoch = max(epoch, a.Epoch)
		case history.Apply:
			if f.Fencing && a.Epoch < epoch {
				v.broken("I6", f.Name, "the receiver applied attempt %d of epoch %d behind epoch %d", a.ID, a.Epoch, epoch)
			}
			if f.segment(a.Sequence) != at {
				continue // an operator has moved the cursor since
			}
			if a.Epoch < epoch && a.rank > highest {
				v.broken("I6", f.Name, "row %d (%s) was first applied by worker %s in epoch %d behind epoch %d", a.rank, a.Key, a.Worker, a.Epoch, epoch)
			}
			highest = max(highest, a.rank)
		case history.Refuse:
			if a.Epoch >= epoch {
				v.broken("I6", f.Name, "the receiver refused attempt %d of epoch %d, the newest", a.ID, a.Epoch)
			}
		}
	}
}

func (v *Verdict) stale(f *feed, a *attempt, epoch int64) {
	v.Stale++
	if f.excuse(a, a.T, a.Worker) == nil {
		v.broken("I8", f.Name, "worker %s sent row %d (%s, attempt %d) in epoch %d at %v, behind epoch %d, and no fault explains it",
			a.Worker, a.rank, a.Key, a.ID, a.Epoch, a.T, epoch)
	}
}
