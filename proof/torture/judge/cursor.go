package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// States of a cursor.
const (
	running = "running"
	halted  = "halted"
)

// checkCursor judges the audit of the cursor's row (I7).
func (v *Verdict) checkCursor(f *feed, slack time.Duration) {
	acknowledged := f.acknowledgements()
	segments := f.segments
	for i, m := range f.moves {
		if m.To.Epoch == m.From.Epoch+1 && f.decidedBy(m) && !f.counted(m) {
			v.broken("I16", f.Name, "move %d, an operator's, begins epoch %d, and the primary that was replaced may have begun that one", m.N, m.To.Epoch)
		}
		if i > 0 && m.From != f.moves[i-1].To {
			v.broken("I7", f.Name, "move %d begins at %+v, and the move before it ended at %+v", m.N, m.From, f.moves[i-1].To)
		}
		switch {
		case m.To.Epoch == m.From.Epoch+1 || m.To.Epoch > m.From.Epoch && m.From.Timeline != 0 && m.From.Timeline != m.To.Timeline:
			if !f.decidedBy(m) {
				v.TakeOvers++
			}
		case m.To.Epoch != m.From.Epoch && !(f.decidedBy(m) && f.counted(m)):
			v.broken("I7", f.Name, "move %d changes the epoch from %d to %d", m.N, m.From.Epoch, m.To.Epoch)
		}
		if m.To.State == halted && m.From.State != halted {
			v.Halts++
		}
		switch {
		case f.did(m, seek) || f.did(m, skip):
			segments = segments[1:] // see checkActions
		case f.did(m, aside):
			v.checkAside(f, m)
		case m.To.Position != m.From.Position || m.To.Sequence != m.From.Sequence:
			v.checkAdvance(f, m, segments[0], acknowledged, slack)
		}
	}
}

func (v *Verdict) checkAdvance(f *feed, m history.Move, s *segment, acknowledged map[int]time.Duration, slack time.Duration) {
	from, to := f.table.place(m.From.Position), f.table.place(m.To.Position)
	switch {
	case f.Sparse && from == to && m.From.Position < m.To.Position && m.From.Sequence == m.To.Sequence:
		v.PassedBetween++
		return
	case !f.stands(m.From) || !f.stands(m.To):
		v.broken("I7", f.Name, "move %d is from %q to %q, which are not both positions of rows", m.N, m.From.Position, m.To.Position)
		return
	case to <= from:
		v.broken("I7", f.Name, "move %d is from row %d to row %d", m.N, from, to)
	case to-from > f.Checkpoint:
		v.broken("I7", f.Name, "move %d passes %d rows, more than the checkpoint of %d", m.N, to-from, f.Checkpoint)
	}
	if m.To.Sequence != s.expected(to) {
		v.broken("I7", f.Name, "move %d to row %d counts %d", m.N, to, m.To.Sequence)
	}
	if f.Sink == history.SQL || f.Sink == history.Remote || f.Sink == history.Queue {
		return // of sql row and move commit together: see I5; a queue does not say when a message came: see I1
	}
	for rank := from + 1; rank <= to; rank++ {
		if at, ok := acknowledged[rank]; !ok || at > m.T+slack {
			v.broken("I7", f.Name, "move %d at %v passes row %d, which was not acknowledged by then", m.N, m.T, rank)
		}
	}
}

// stands reports whether a cursor may stand there: at a row, or between two if a condition leaves rows out.
func (f *feed) stands(at history.Standing) bool {
	_, known := f.table.byPlace[at.Position]
	return known || f.Sparse
}

// acknowledgements are the times at which each row was first acknowledged.
func (f *feed) acknowledgements() map[int]time.Duration {
	times := map[int]time.Duration{}
	for _, act := range f.acts {
		a := f.byID[act.ID]
		if act.Act != history.Reply || !a.acknowledged() {
			continue
		}
		if _, ok := times[a.rank]; !ok {
			times[a.rank] = act.T
		}
	}
	for rank, messages := range f.stored {
		times[rank] = messages[0].T // by the server's clock
	}
	return times
}
