package judge

import "github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"

// checkRepeats finds the cause of each application that was not the last one of its row (I5). One that an operator asked
// for needs none.
func (v *Verdict) checkRepeats(f *feed) {
	last := map[int]*attempt{}
	for _, b := range f.applications() {
		switch a := last[b.rank]; {
		case a == nil || b.rank == 0:
		case f.segment(a.Sequence) != f.segment(b.Sequence):
			v.Replayed++
		default:
			v.repeated(f, a, b)
		}
		last[b.rank] = b
	}
	before, queued := map[string]*segment{}, 0
	for _, a := range f.applied {
		s := f.segment(a.Sequence)
		switch {
		case before[a.Key] == nil:
		case before[a.Key] != s:
			v.Replayed++
		case f.Sink == history.Queue:
			queued++
		default:
			v.Repeats = append(v.Repeats, Repeat{Process: f.Name, Key: a.Key})
			v.broken("I5", f.Name, "%s was applied again, in sequence %d, by a sink that lets nothing come twice", a.Key, a.Sequence)
		}
		before[a.Key] = s
	}
	v.Queued += queued
	if most := f.Checkpoint * f.causing(); queued > most {
		v.broken("I5", f.Name, "%d messages lay in the queue again, and its faults explain no more than %d", queued, most)
	}
}

// causing counts the faults that may have led to repeats. Messages in a queue have no times, so that no more than their
// number can be held against them.
func (f *feed) causing() int {
	n := len(f.keeps())
	for _, c := range f.faults {
		if causes(c.Kind) {
			n++
		}
	}
	return n
}

// repeated: a was applied, and b as well. Either may have been the late one.
func (v *Verdict) repeated(f *feed, a, b *attempt) {
	r := Repeat{Process: f.Name, Key: a.Key, Attempt: b.ID}
	if c := f.excuse(a, b.T, a.Worker, b.Worker); c != nil {
		r.Cause, r.Kind = c.ID, c.Kind
	} else if k := f.keep(a, b); k != nil {
		r.Cause, r.Kind = k.ID, k.Kind
	} else {
		v.broken("I5", f.Name, "row %d (%s) was applied in attempt %d by worker %s in epoch %d at %v, and again in attempt %d by worker %s in epoch %d at %v, "+
			"and no fault explains it", a.rank, a.Key, a.ID, a.Worker, a.Epoch, a.T, b.ID, b.Worker, b.Epoch, b.T)
	}
	v.Repeats = append(v.Repeats, r)
}
