package judge

import (
	"sort"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// checkStale judges what was received under an epoch below one already seen (I6, I8).
func (v *Verdict) checkStale(f *feed) {
	var epoch int64
	highest := 0    // row applied so far in the newest segment
	var at *segment // the newest that was seen
	ahead := map[int64]int{}
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
				v.ahead(f, a, epoch, ahead)
			}
			highest = max(highest, a.rank)
		case history.Refuse:
			if a.Epoch >= epoch {
				v.broken("I6", f.Name, "the receiver refused attempt %d of epoch %d, the newest", a.ID, a.Epoch)
			}
		}
	}
}

// ahead judges a row that was first applied under an outdated epoch (I6). A worker that is superseded may have acknowledged
// up to checkpoint rows behind the cursor, the last of which was on the wire. That one arrives whenever the network
// likes, so it may be ahead of the next worker, which begins at the cursor. It is one row for each epoch, and no later one.
func (v *Verdict) ahead(f *feed, a *attempt, epoch int64, byEpoch map[int64]int) {
	last := f.supersededAt(a.Epoch) + f.Checkpoint
	before := byEpoch[a.Epoch]
	switch {
	case a.rank > last:
		v.broken("I6", f.Name, "row %d (%s) was first applied by worker %s in epoch %d behind epoch %d, and that worker had no row beyond %d on the wire",
			a.rank, a.Key, a.Worker, a.Epoch, epoch, last)
	case before != 0 && before != a.rank:
		v.broken("I6", f.Name, "rows %d and %d (%s) were both first applied by worker %s in epoch %d behind epoch %d, and it had one on the wire",
			before, a.rank, a.Key, a.Worker, a.Epoch, epoch)
	default:
		v.Ahead++
	}
	byEpoch[a.Epoch] = a.rank
}

// supersededAt is the row at which the cursor was when an epoch ended.
func (f *feed) supersededAt(epoch int64) int {
	i := sort.Search(len(f.moves), func(i int) bool { return f.moves[i].To.Epoch > epoch })
	if i == len(f.moves) {
		return 0
	}
	return f.table.place(f.moves[i].From.Position)
}

func (v *Verdict) stale(f *feed, a *attempt, epoch int64) {
	v.Stale++
	if f.excuse(a, a.T, a.Worker) == nil {
		v.broken("I8", f.Name, "worker %s sent row %d (%s, attempt %d) in epoch %d at %v, behind epoch %d, and no fault explains it",
			a.Worker, a.rank, a.Key, a.ID, a.Epoch, a.T, epoch)
	}
}
