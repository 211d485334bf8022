package judge

import (
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// A promotion moves the sequence of a cursor on by a multiple of the one, and the epoch by more than the other. No process
// counts so far by itself.
const (
	promotedSequence = 10_000_000
	promotedEpoch    = 1_000_000
)

// promoted is what the audit calls it.
const promoted = "promoted"

// checkPromotions: the numbers of a cursor leap only where a standby was promoted, and then by as much as is agreed (I7).
// Standbys of the field have all that was acknowledged, so nothing else of a process may change by it.
func (v *Verdict) checkPromotions(run *history.Run) {
	noted := map[string]bool{}
	for _, a := range run.Actions {
		if a.Kind == promoted {
			noted[a.Process+"/"+a.Tx] = true
		}
	}
	for _, m := range run.Moves {
		leaps := leapsOf(m.To.Sequence) != leapsOf(m.From.Sequence)
		if !leaps && !noted[m.Process+"/"+m.Tx] {
			continue
		}
		want := m.From
		want.Sequence, want.Epoch, want.Timeline = m.To.Sequence, m.To.Epoch, m.To.Timeline
		far := m.To.Sequence > m.From.Sequence && (m.To.Sequence-m.From.Sequence)%promotedSequence == 0 && m.To.Epoch-m.From.Epoch >= promotedEpoch
		if !noted[m.Process+"/"+m.Tx] || !far || m.To != want || m.To.Timeline == m.From.Timeline {
			v.broken("I7", m.Process, "move %d leaps from %+v to %+v, and is no promotion that the audit shows", m.N, m.From, m.To)
		}
	}
}

// counted reports whether the epoch of an operator's move is the next one or, of a row in which a promotion is not noted yet,
// the first of a range that no other server has. During a promotion it may be either. The first server has timeline 1.
func (f *feed) counted(m history.Move) bool {
	var over, begun int64
	for _, x := range f.faults {
		if x.Kind == history.Promote && x.to <= m.T {
			over++
		}
		if x.Kind == history.Promote && x.from <= m.Committed {
			begun++
		}
	}
	switch grown := m.To.Epoch - m.From.Epoch; {
	case grown == 1:
		return m.From.Timeline == 0 || m.From.Timeline > over
	default:
		return grown >= promotedEpoch && m.From.Timeline <= begun
	}
}

func leapsOf(sequence int64) int64 { return sequence / promotedSequence }

// levelled is a run as if promotions did not move sequences: so a record has one number, however many there were.
func levelled(run *history.Run) *history.Run {
	r := *run
	r.Deliveries, r.Moves, r.Told = slices.Clone(r.Deliveries), slices.Clone(r.Moves), slices.Clone(r.Told)
	r.Letters, r.Applied, r.Ends = slices.Clone(r.Letters), slices.Clone(r.Applied), slices.Clone(r.Ends)
	for i := range r.Deliveries {
		level(&r.Deliveries[i].Sequence)
	}
	for i := range r.Moves {
		level(&r.Moves[i].From.Sequence)
		level(&r.Moves[i].To.Sequence)
	}
	for i := range r.Told {
		level(&r.Told[i].At.Sequence)
	}
	for i := range r.Letters {
		level(&r.Letters[i].Sequence)
	}
	for i := range r.Applied {
		level(&r.Applied[i].Sequence)
	}
	for i := range r.Ends {
		level(&r.Ends[i].Cursor.Sequence)
		level(&r.Ends[i].Status.Sequence)
	}
	return &r
}

func level(sequence *int64) { *sequence %= promotedSequence }
