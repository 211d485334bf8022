package judge

import (
	"net/http"
	"time"
)

// haltSlack is what an attempt that was sent before takes to arrive.
const haltSlack = 100 * time.Millisecond

// checkHalts: a process halts only because a record was refused for good, and while it is halted or paused nothing of it is
// received (I10), but for what a fault had held up on the wire.
func (v *Verdict) checkHalts(f *feed) {
	var refusals, halts, seen int
	for i, m := range f.moves {
		if !still(m.To.State) || still(m.From.State) {
			continue
		}
		until := f.resumed(i)
		for ; seen < len(f.attempts) && f.attempts[seen].T < until; seen++ {
			a := f.attempts[seen]
			if refused(a.status) || refusesUs(a.status) {
				refusals++
			}
			if a.T > f.tempo.After(m.T, haltSlack) && f.excuse(a, a.T, a.Worker) == nil {
				v.broken("I10", f.Name, "row %d (%s) was received at %v, and the process was %s from %v to %v", a.rank, a.Key, a.T, m.To.State, m.T, until)
			}
		}
		if m.To.State != halted {
			continue
		}
		if f.refusedByTarget(m.T) {
			continue // and the row was kept, so that it could not be put aside
		}
		if halts++; refusals < halts {
			v.broken("I10", f.Name, "move %d halts the process at row %d, and nobody had refused it", m.N, f.table.place(m.To.Failed))
		}
	}
}

func still(state string) bool { return state == halted || state == paused }

// refused reports whether an answer says that a record can never succeed.
func refused(status int) bool { return status == http.StatusUnprocessableEntity }

// refusesUs reports whether an answer speaks of the sender, its credentials or the address, and so of no record: a process
// halts over it, and puts nothing aside.
func refusesUs(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	default:
		return status >= 300 && status <= 399
	}
}

// resumed is when a process that move i halted or paused was set going again.
func (f *feed) resumed(i int) time.Duration {
	for _, later := range f.moves[i+1:] {
		if !still(later.To.State) {
			return later.T
		}
	}
	return forever
}
