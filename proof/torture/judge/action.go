package judge

import "github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"

// paused is a state of a cursor, beside running and halted.
const paused = "paused"

// seekGap is by how much a seek moves the sequence on.
const seekGap = 10_000

// checkActions holds the audit against the moves (I10): whoever stops a process, sets it going or moves its cursor says so
// in the same transaction, and what the audit says has happened.
func (v *Verdict) checkActions(f *feed) {
	moved := map[string]bool{}
	for _, m := range f.moves {
		moved[m.Tx] = true
		if m.From.State != m.To.State && !f.accountable(m) {
			v.broken("I10", f.Name, "move %d makes the process %s that was %s, and the audit does not say why", m.N, m.To.State, m.From.State)
		}
		v.checkDecision(f, m)
	}
	for tx, actions := range f.actions {
		for _, a := range actions {
			if leaves(a.Kind) && !moved[tx] {
				v.broken("I10", f.Name, "the audit has a %s by %s, and the cursor shows none", a.Kind, a.Actor)
			}
			if decided(a.Kind) {
				v.Actions++
			}
		}
	}
}

// accountable reports whether the audit has the action that a change of state needs.
func (f *feed) accountable(m history.Move) bool {
	switch {
	case m.To.State == paused:
		return f.did(m, "pause")
	case m.To.State == halted:
		return f.did(m, "halt")
	case m.From.State == paused:
		return f.did(m, "resume")
	default:
		return f.did(m, "retry") || f.did(m, skip) || f.did(m, seek)
	}
}

// checkDecision judges how far an operator moved the cursor.
func (v *Verdict) checkDecision(f *feed, m history.Move) {
	from, to := f.table.place(m.From.Position), f.table.place(m.To.Position)
	var passes, counts int64
	switch {
	case f.did(m, seek):
		passes, counts = int64(to-from), seekGap
	case f.did(m, skip):
		passes, counts = 1, 1
		if m.To.Position != m.From.Failed {
			v.broken("I10", f.Name, "move %d skips to %q, and the failing record is at %q", m.N, m.To.Position, m.From.Failed)
		}
	default:
		return
	}
	if int64(to-from) != passes || m.To.Sequence-m.From.Sequence != counts || m.To.Epoch == m.From.Epoch {
		v.broken("I10", f.Name, "move %d, an operator's, is from row %d, sequence %d, epoch %d to row %d, sequence %d, epoch %d",
			m.N, from, m.From.Sequence, m.From.Epoch, to, m.To.Sequence, m.To.Epoch)
	}
}

// decided reports whether an action is an operator's.
func decided(kind string) bool {
	switch kind {
	case "pause", "resume", "retry", skip, seek:
		return true
	default:
		return false
	}
}

// decidedBy reports whether a move is an operator's.
func (f *feed) decidedBy(m history.Move) bool {
	for _, a := range f.actions[m.Tx] {
		if decided(a.Kind) {
			return true
		}
	}
	return false
}

// leaves reports whether an action changes the cursor's row.
func leaves(kind string) bool { return decided(kind) || kind == "halt" }
