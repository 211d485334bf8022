package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// aside is what the audit calls the move of a cursor behind a record that is put aside.
const aside = "dead_letter"

// letter is a dead letter with the move that put its record aside.
type letter struct {
	history.Letter
	rank int
	at   time.Duration // of the move
}

// putAside finds for each segment what was put aside in it, and holds each dead letter against its move and the other way
// round (I7): there is one for each, of one transaction.
func (v *Verdict) putAside(f *feed) {
	f.aside = map[*segment]map[int]*letter{}
	moves := map[int64]history.Move{} // by sequence
	for _, m := range f.moves {
		if f.did(m, aside) {
			moves[m.To.Sequence] = m
		}
	}
	for _, l := range f.letters {
		m, moved := moves[l.Sequence]
		delete(moves, l.Sequence)
		if !moved || m.To.Position != l.Position || l.Resolution == "" && l.Tx != m.Tx {
			v.broken("I7", f.Name, "row %s is a dead letter, and the cursor did not pass it in the same transaction", l.Key)
			continue
		}
		s := f.segment(l.Sequence)
		if f.aside[s] == nil {
			f.aside[s] = map[int]*letter{}
		}
		f.aside[s][f.table.byKey[l.Key]] = &letter{l, f.table.byKey[l.Key], m.T}
	}
	for _, m := range moves {
		v.broken("I1", f.Name, "move %d puts %q aside, and there is no dead letter", m.N, m.To.Position)
	}
}

// checkLetters holds what dead letters say against the table (I2, I9), and their reason against the receiver (I10).
func (v *Verdict) checkLetters(f *feed) {
	for s, letters := range f.aside {
		for rank, l := range letters {
			v.PutAside++
			if rank == 0 {
				v.broken("I2", f.Name, "%s is a dead letter, and is not in the table", l.Key)
				continue
			}
			row := f.table.rows[rank-1]
			v.compare(f, l.Key, rank, row.Position, l.Position, row.Hash, l.Hash, l.Sequence)
			v.checkReason(f, s, l)
		}
	}
}

// checkReason: a record is put aside because it was refused for good, or was tried as often as it may be; not one that was
// acknowledged, unless that was lost on its way; and one that was replayed was delivered. A replay that was delivered waits
// for a table that is locked until its time is up, and may be cut short until then: its letter stays open.
func (v *Verdict) checkReason(f *feed, s *segment, l *letter) {
	if f.Sink == history.Remote {
		v.checkTarget(f, l)
		return
	}
	var refusals, failures, later int
	for _, a := range f.of[l.rank] {
		switch {
		case f.segment(a.Sequence) != s:
		case a.acknowledged() && a.T <= l.at:
			if f.excuse(a, l.at, a.Worker) == nil {
				v.broken("I10", f.Name, "row %d (%s) was put aside at %v, and attempt %d was acknowledged before", l.rank, l.Key, l.at, a.ID)
			}
		case a.acknowledged():
			later++
			if l.Resolution != "replayed" && f.excuse(a, f.tempo.After(a.T, history.ReplayTimeout), a.Worker) == nil {
				v.broken("I10", f.Name, "row %d (%s) was put aside at %v and not replayed, and attempt %d of it was acknowledged", l.rank, l.Key, l.at, a.ID)
			}
		case refused(a.status):
			refusals++
		case refusesUs(a.status):
		default:
			failures++
		}
	}
	enough := f.Attempts > 0 && (failures >= f.Attempts || f.disturbed(l.at-aWhile, l.at))
	if !f.Letters || refusals == 0 && !enough {
		v.broken("I10", f.Name, "row %d (%s) was put aside at %v, and nobody had refused it", l.rank, l.Key, l.at)
	}
	if l.Resolution != "replayed" {
		return
	}
	v.ReplayedLetters++
	if later == 0 {
		v.broken("I1", f.Name, "row %d (%s) was put aside and replayed, and was never applied and acknowledged", l.rank, l.Key)
	}
}

// aWhile is longer than a record is tried before it is put aside: what befell its attempts lies within it.
const aWhile = 10 * time.Second

// disturbed reports whether a fault that may have used up a record's attempts overlaps a time: it kept them from arriving, or
// from arriving in time. The brokers' processes have more attempts than a stalled link uses up, and one at a broker that is
// away does not count.
func (f *feed) disturbed(from, to time.Duration) bool {
	broker := f.Sink == history.Queue || f.Sink == history.Stream
	for _, x := range f.faults {
		if causes(x.Kind) && (!broker || x.Kind == history.Overload) && x.from <= to && (f.tempo.After(x.to, onTheWire) >= from) {
			return true
		}
	}
	return false
}

// checkAside: the move behind a dead letter is one row and one number long.
func (v *Verdict) checkAside(f *feed, m history.Move) {
	from, to := f.table.place(m.From.Position), f.table.place(m.To.Position)
	if to != from+1 || m.To.Sequence != m.From.Sequence+1 || m.To.Epoch != m.From.Epoch || m.To.State != running || m.To.Failed != "" {
		v.broken("I7", f.Name, "move %d puts a record aside, from %+v to %+v", m.N, m.From, m.To)
	}
}

// passed reports whether a row had been put aside by some time.
func (f *feed) passed(s *segment, rank int, by time.Duration) bool {
	l := f.aside[s][rank]
	return l != nil && l.at <= by
}
