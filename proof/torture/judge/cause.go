package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// fault is an injected fault as a whole.
type fault struct {
	history.Fault // of its Begin
	from, to      time.Duration
	struck        bool
	ranks         map[string]map[int]bool // that it excuses, by process
}

type faults struct{ all []*fault }

// newFaults joins the phases. A fault that never ended lasts for ever.
func newFaults(phases []history.Fault, beats []history.Beat) *faults {
	byID := map[int]*fault{}
	all := &faults{all: overloads(beats)}
	for _, p := range phases {
		f := byID[p.ID]
		if f == nil {
			f = &fault{Fault: p, from: p.T, to: forever, struck: true, ranks: map[string]map[int]bool{}}
			byID[p.ID] = f
			all.all = append(all.all, f)
		}
		switch p.Phase {
		case history.Ended:
			f.to = p.T
		case history.Missed:
			f.to, f.struck = p.T, false
		}
	}
	slices.SortStableFunc(all.all, func(a, b *fault) int { return cmp.Compare(a.from, b.from) })
	return all
}

// The receivers' time-outs are a second, and an answer takes a hundredth of it. A second that is worth less than an eighth
// of one is overloaded: the answer to a request in it may have come too late, with no other fault.
const (
	overloadWindow = time.Second
	overloadTimes  = 8
)

// overloads finds the seconds in which the machine itself was the fault.
func overloads(beats []history.Beat) []*fault {
	var tempo history.Tempo
	for _, b := range beats {
		tempo.Add(b)
	}
	var all []*fault
	for _, b := range beats {
		from := max(0, b.T-overloadWindow)
		if tempo.Between(from, b.T) < (b.T-from)/overloadTimes {
			all = append(all, &fault{Fault: history.Fault{ID: -1 - len(all), Kind: history.Overload}, from: from, to: b.T, struck: true, ranks: map[string]map[int]bool{}})
		}
	}
	return all
}

const forever = history.Forever

// of returns the faults that may concern a process, in the order of their beginning.
func (all *faults) of(p history.Process) []*fault {
	var some []*fault
	for _, f := range all.all {
		if f.struck && (f.Process == "" || f.Process == p.Name) && (f.Broker == "" || f.Broker == p.Sink) {
			some = append(some, f)
		}
	}
	return some
}

func (all *faults) tally(repeats []Repeat) []Tally {
	byKind := map[history.Kind]*Tally{}
	for _, f := range all.all {
		t := byKind[f.Kind]
		if t == nil {
			t = &Tally{Kind: f.Kind}
			byKind[f.Kind] = t
		}
		if f.struck {
			t.Struck++
		} else {
			t.Missed++
		}
	}
	for _, r := range repeats {
		if t := byKind[r.Kind]; t != nil {
			t.Repeats++
		}
	}
	var tallies []Tally
	for _, kind := range append(history.Kinds(), history.Overload) {
		if t := byKind[kind]; t != nil {
			tallies = append(tallies, *t)
		}
	}
	return tallies
}

// onTheWire is for how long behind its end a fault may still cause something: what was sent takes a moment to arrive, and
// so does the news of a dead connection, on a busy machine.
const onTheWire = 2 * time.Second

// causes reports whether a fault of this kind may lead to repeats and stale attempts, beyond those of a scripted answer.
func causes(kind history.Kind) bool {
	switch kind {
	case history.Kill, history.Stop,
		history.CutReceiver, history.StallReceiver, history.TearToReceiver, history.TearFromReceiver, history.KillBroker, history.KillNATS,
		history.CutDatabase, history.StallDatabase, history.TearToDatabase, history.TearFromDatabase, history.StrandCommand,
		history.TerminateBackend, history.Crash, history.Promote, history.Overload:
		return true
	default:
		return false
	}
}

// answers reports whether a kind decides an answer: it explains the very attempt it was given to, and nothing else.
func answers(kind history.Kind) bool {
	switch kind {
	case history.AnswerLate, history.AnswerNever, history.AnswerLie, history.AnswerReset:
		return true
	default:
		return false
	}
}

// excuse finds a fault that explains an attempt with regard to what happened from its reception until a later time, and
// has it excuse the row. A fault excuses at most checkpoint rows of a process.
func (f *feed) excuse(a *attempt, until time.Duration, workers ...string) *fault {
	var best *fault
	for _, candidate := range f.faults {
		if candidate.from > until {
			break
		}
		if !candidate.explains(f, a, workers) {
			continue
		}
		if answers(candidate.Kind) || candidate.ranks[f.Name][a.rank] {
			best = candidate
			break
		}
		// Of those with room left, the one that can explain the fewest others.
		if len(candidate.ranks[f.Name]) < f.Checkpoint && (best == nil || candidate.to < best.to) {
			best = candidate
		}
	}
	if best != nil {
		if best.ranks[f.Name] == nil {
			best.ranks[f.Name] = map[int]bool{}
		}
		best.ranks[f.Name][a.rank] = true
	}
	return best
}

func (c *fault) explains(f *feed, a *attempt, workers []string) bool {
	if answers(c.Kind) {
		return a.Fault == c.ID
	}
	if !causes(c.Kind) || f.tempo.After(c.to, onTheWire) < a.T {
		return false
	}
	if c.Worker == "" {
		return true
	}
	for _, w := range workers {
		if w == c.Worker {
			return true
		}
	}
	return false
}
