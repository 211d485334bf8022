package judge

import (
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// Within how long something has to be told.
const (
	// visible is what a commit that is on disk takes to be seen by others.
	visible = 5 * time.Second
	// toldByStatus counts from the question. It waits for a quarter of a second if a transaction holds something up.
	toldByStatus = 15 * time.Second
	// toldByMetrics counts the time in which one and the same worker is left alone. It looks every five seconds.
	toldByMetrics = 15 * time.Second
	// recovery is what a worker that was harmed takes to look again.
	recovery = 2 * time.Second
)

// stretch is how a cursor stood, and the time in which it can have been seen so.
type stretch struct {
	history.Standing
	from, to time.Duration
}

// standings are all of a feed, in their order. Neither end of theirs is before that of the one in front.
func (f *feed) standings() []stretch {
	if len(f.moves) == 0 {
		return nil
	}
	all := []stretch{{Standing: f.moves[0].From}}
	for _, m := range f.moves {
		last := &all[len(all)-1]
		last.to = max(last.to, f.seenBy(f.tempo.After(m.Committed, visible)))
		all = append(all, stretch{Standing: m.To, from: m.Committed, to: last.to})
	}
	all[len(all)-1].to = forever
	return all
}

// seenBy is a moment that is put off while the server is away.
func (f *feed) seenBy(at time.Duration) time.Duration {
	for _, x := range f.faults {
		if ofServer(x.Kind) && x.from <= at && x.to > at-visible {
			at = max(at, f.tempo.After(x.to, visible))
		}
	}
	return at
}

// ofServer reports whether a fault takes the database from everybody.
func ofServer(kind history.Kind) bool { return kind == history.Crash || kind == history.Promote }

// checkTold holds what status and metrics said against how the cursor stood: what they say was true at some moment between
// the question and the answer (I10 for the state, I12 for all else).
func (v *Verdict) checkTold(f *feed, slack time.Duration) {
	f.stood = f.standings()
	for _, t := range f.told {
		v.Told++
		seen := f.seen(t, slack)
		v.checkAnswer(f, t, seen)
		if t.Worker == "" {
			v.checkHold(f, t, slack)
		}
	}
	v.checkLags(f)
	v.checkTimely(f)
}

func (v *Verdict) checkAnswer(f *feed, t history.Told, seen []stretch) {
	tells := func(same func(stretch) bool) bool { return slices.ContainsFunc(seen, same) }
	switch {
	case !tells(func(s stretch) bool { return s.State == t.At.State }):
		v.broken("I10", f.Name, "%s says at %v that it is %s, and it was not since %v", teller(t), t.T, t.At.State, t.From)
	case t.Worker == "" && !tells(func(s stretch) bool { s.Timeline = 0; return s.Standing == t.At }),
		!tells(func(s stretch) bool { return s.Sequence == t.At.Sequence }), // metrics are not read at one moment
		!tells(func(s stretch) bool { return s.Epoch == t.At.Epoch }):
		v.broken("I12", f.Name, "%s says at %v that it stands at %+v, and it did not since %v", teller(t), t.T, t.At, t.From)
	}
}

// seen are the standings that can have been seen by whoever was told something.
func (f *feed) seen(t history.Told, slack time.Duration) []stretch {
	first, _ := slices.BinarySearchFunc(f.stood, t.From-slack, func(s stretch, at time.Duration) int {
		if s.to < at {
			return -1
		}
		return 1
	})
	last := first
	for last < len(f.stood) && f.stood[last].from <= t.T+slack {
		last++
	}
	return f.stood[first:last]
}

func teller(t history.Told) string {
	if t.Worker == "" {
		return "status"
	}
	return "worker " + t.Worker
}

// checkHold: status names what holds delivery up (I10). A writer holds up nothing that a worker delivers, so while one does
// none is named.
func (v *Verdict) checkHold(f *feed, t history.Told, slack time.Duration) {
	switch {
	case still(t.At.State):
		if t.Hold != t.At.State {
			v.broken("I10", f.Name, "status says at %v that it is %s, and names %q", t.T, t.At.State, t.Hold)
		}
	case f.heldThroughout(t, history.HoldsRow):
		if t.Hold != "locked" {
			v.broken("I10", f.Name, "status names %q at %v, and a stranger had locked the row since %v", t.Hold, t.T, t.From)
		}
	case t.At.Failed != "" && t.Hold == "":
		v.broken("I10", f.Name, "status says at %v that a record fails, and names nothing", t.T)
	case t.Lag > 0 && t.Problem == "" && f.heldThroughout(t, history.HoldsTable) && (t.HeldBack == 0 || t.Hold == "") && !f.delivering(t, slack):
		v.broken("I10", f.Name, "status names %q at %v and %d transactions, and one had been open since %v, and nothing was delivered", t.Hold, t.T, t.HeldBack, t.From)
	default:
		return
	}
}

// delivering reports whether a worker was at work between a question and its answer: it had the row, during a call for
// instance, or it moved the cursor.
func (f *feed) delivering(t history.Told, slack time.Duration) bool {
	return t.Leased || slices.ContainsFunc(f.moves, func(m history.Move) bool {
		moved := m.To.Position != m.From.Position || m.To.Sequence != m.From.Sequence
		return moved && t.From <= m.Committed+slack && m.T <= t.T+slack
	})
}

// heldThroughout reports whether something was held from a question to its answer.
func (f *feed) heldThroughout(t history.Told, kind history.HoldKind) bool {
	return slices.ContainsFunc(f.holds, func(h history.Hold) bool { return h.Kind == kind && h.From <= t.From && t.T <= h.To })
}

// checkLags: of the rows behind the cursor status keeps none back that was committed before the question, and makes none up
// (I12).
func (v *Verdict) checkLags(f *feed) {
	var told []history.Told
	var least, most []arrival
	for _, t := range f.told {
		if t.Lag >= 0 {
			rank := f.table.place(t.At.Position)
			told, least, most = append(told, t), append(least, arrival{t.From, rank}), append(most, arrival{t.T, rank})
		}
	}
	atLeast := behind(f.table.committed, len(f.table.rows), least)
	atMost := behind(f.table.inserts, len(f.table.rows), most)
	for i, t := range told {
		if int(t.Lag) < atLeast[i] || int(t.Lag) > atMost[i] {
			v.broken("I12", f.Name, "status says at %v that %d records stand behind row %d, and there were %d to %d", t.T, t.Lag, least[i].rank, atLeast[i], atMost[i])
		}
	}
}

// checkTimely: a process that stands halted or paused is told to be in time (I10).
func (v *Verdict) checkTimely(f *feed) {
	for i, m := range f.moves {
		if !still(m.To.State) || m.To.State == m.From.State {
			continue
		}
		until := f.changed(i)
		for _, by := range []struct {
			name     string
			deadline time.Duration
			tellers  func(history.Told) bool
			count    *int
		}{
			{"status", f.leftAlone("", f.asked(m.Committed, until), toldByStatus), func(t history.Told) bool { return t.Worker == "" }, &v.ToldByStatus},
			{"no worker's metrics", f.someLeftAlone(m.Committed), func(t history.Told) bool { return t.Worker != "" }, &v.ToldByMetrics},
		} {
			told := slices.ContainsFunc(f.told, func(t history.Told) bool {
				return by.tellers(t) && t.At.State == m.To.State && m.Committed <= t.T && t.T <= by.deadline && t.From <= until
			})
			if told {
				*by.count++
			} else if until > by.deadline {
				v.broken("I10", f.Name, "it was %s from %v to %v, and %s told so by %v", m.To.State, m.Committed, until, by.name, by.deadline)
			}
		}
	}
}

// asked is when status was first asked behind a moment, of the questions that it answered; that moment if none was asked by
// some other.
func (f *feed) asked(since, until time.Duration) time.Duration {
	for _, t := range f.told {
		if t.Worker == "" && since <= t.From && t.From <= until {
			return t.From
		}
	}
	return since
}

// changed is when the state that move i brought about ended.
func (f *feed) changed(i int) time.Duration {
	for _, later := range f.moves[i+1:] {
		if later.To.State != f.moves[i].To.State {
			return later.Committed
		}
	}
	return forever
}

// leftAlone is when a worker, or with "" the server, has been spared by faults for so long since a moment.
func (f *feed) leftAlone(worker string, since, need time.Duration) time.Duration {
	for _, x := range f.faults {
		harmed := ofServer(x.Kind) || worker != "" && x.Worker == worker
		if !harmed || x.to < since || x.from > f.tempo.After(since, need) {
			continue
		}
		need -= max(0, f.tempo.Between(since, x.from))
		since = max(since, f.tempo.After(x.to, recovery))
	}
	return f.tempo.After(since, need)
}

// someLeftAlone is when the first of the workers has been spared for as long as its metrics may take.
func (f *feed) someLeftAlone(since time.Duration) time.Duration {
	first := forever
	for _, worker := range f.workers {
		first = min(first, f.leftAlone(worker, since, toldByMetrics))
	}
	return first
}
