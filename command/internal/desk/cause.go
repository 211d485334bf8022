package desk

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Cause is what keeps records of a process waiting.
type Cause string

// The causes. "" means that nothing waits.
const (
	// CauseFence: an open transaction may still insert before the records that wait.
	CauseFence Cause = "fence"
	// CauseReceiver: the receiver is slow, or fails.
	CauseReceiver Cause = "receiver"
	// CauseHalt: a record failed for good, and waits for a decision.
	CauseHalt Cause = "halt"
	// CauseLimit: the limit of the process in the file.
	CauseLimit Cause = "limit"
	// CausePause: an operator paused the process.
	CausePause Cause = "pause"
	// CauseNobody: no worker runs the process.
	CauseNobody Cause = "nobody"
	// CauseLock: another session has locked the row of the process.
	CauseLock Cause = "lock"
	// CauseBacklog: the worker delivers, and has not come to these records yet.
	CauseBacklog Cause = "backlog"
	// CauseUnknown: nobody looked then.
	CauseUnknown Cause = "unknown"
)

// Share is how long one cause kept the oldest record waiting.
type Share struct {
	Cause   Cause   `json:"cause"`
	Seconds float64 `json:"seconds"`
}

// ofHold is the cause of each kind of hold.
var ofHold = map[daemon.HoldKind]Cause{
	daemon.HoldPaused: CausePause, daemon.HoldHalted: CauseHalt, daemon.HoldLocked: CauseLock, daemon.HoldFailing: CauseReceiver,
	daemon.HoldSink: CauseReceiver, daemon.HoldFuture: CauseFence, daemon.HoldWriter: CauseFence, daemon.HoldNobody: CauseNobody,
	daemon.HoldHidden: CauseLock, daemon.HoldPromoted: CauseNobody,
}

// causeNow is the cause at the last look: by the row, which every look reads, and by the last status.
func (m *memory) causeNow() Cause {
	switch {
	case m.row.State == cursor.Paused:
		return CausePause
	case m.row.State == cursor.Halted:
		return CauseHalt
	case m.statusAt.IsZero():
		return ""
	case m.status.Hold != nil && (m.status.State != m.row.State || m.status.Hold.Kind == daemon.HoldFailing && m.row.Failure == nil):
		return "" // it is over; the status was read before
	case m.status.Hold != nil:
		return ofHold[m.status.Hold.Kind]
	case m.status.Lag == nil || m.status.Lag.Records == 0:
		return ""
	case m.row.Failure != nil:
		return CauseReceiver
	case len(m.status.Holding) > 0:
		return CauseFence
	case m.file.Limit.Records > 0:
		return CauseLimit
	default:
		return CauseBacklog
	}
}

// noteSpan goes on with the last span, or begins one, if something holds the process up.
func (m *memory) noteSpan(now time.Time, quiet time.Duration) {
	for len(m.spans) > 0 && (len(m.spans) > maxSpans || now.Sub(m.spans[0].To) > memoryTime) {
		m.spans = slices.Delete(m.spans, 0, 1)
	}
	n, wasOpen := len(m.spans), false
	if n > 0 {
		wasOpen, m.spans[n-1].Open = m.spans[n-1].Open, false
	}
	if m.cause == "" || m.cause == CauseBacklog {
		return
	}
	span := Span{Cause: m.cause, From: now, To: now, Open: true}
	var haltedAt cursor.Position
	if f := m.row.Failure; m.cause == CauseHalt && f != nil {
		haltedAt = f.Position
	}
	if h := m.status.Hold; h != nil && ofHold[h.Kind] == m.cause {
		span.Kind, span.Text = string(h.Kind), visible.Inline(h.String())
	}
	if m.cause == CauseFence && len(m.status.Holding) > 0 {
		span.Who = who(m.status.Holding[0])
	}
	if n > 0 {
		last := &m.spans[n-1]
		gap := flap // a look has seen that it was over
		if wasOpen {
			gap = max(flap, quiet+quiet/2) // no look since
		}
		same := last.Cause == span.Cause && last.Who == span.Who && m.haltedAt == haltedAt
		if same && now.Sub(last.To) <= gap {
			last.To, last.Open = now, true
			last.Text, last.Kind = cmp.Or(span.Text, last.Text), cmp.Or(span.Kind, last.Kind)
			return
		}
	}
	if began := m.began(); !began.IsZero() && began.Before(now) {
		span.From = began
		if n > 0 && m.spans[n-1].To.After(began) {
			span.From = m.spans[n-1].To
		}
	}
	m.spans, m.haltedAt = append(m.spans, span), haltedAt
}

// began is when the cause began, where the database knows that; zero if it does not.
func (m *memory) began() time.Time {
	switch {
	case m.cause == CauseHalt && m.row.Failure != nil:
		return m.row.Failure.First
	case m.cause == CauseReceiver && m.row.Failure != nil:
		return m.row.Failure.First
	case m.cause == CausePause, m.cause == CauseNobody:
		return m.row.UpdatedAt
	case m.cause == CauseFence && len(m.status.Holding) > 0:
		return m.status.Holding[0].Since
	default:
		return time.Time{}
	}
}

// who names a transaction in a few words.
func who(w table.Writer) string {
	if w.GID != "" {
		return "prepared transaction " + visible.Quoted(w.GID)
	}
	text := fmt.Sprintf("pid %d", w.PID)
	if w.Application != "" {
		text += " " + visible.Line(w.Application)
	}
	return text
}

// covered are the times in which the board looked, the oldest first.
type covered []stretch

type stretch struct{ from, to time.Time }

// note adds a look. Looks that are not further apart than a quiet board makes them are one stretch.
func (c *covered) note(now time.Time, quiet time.Duration) {
	if n := len(*c); n > 0 && now.Sub((*c)[n-1].to) <= quiet+quiet/2 {
		(*c)[n-1].to = now
		return
	}
	*c = append(*c, stretch{now, now})
	if len(*c) > maxSpans {
		*c = slices.Delete(*c, 0, 1)
	}
}

// within is how long the board looked between two times.
func (c covered) within(from, to time.Time) (all time.Duration) {
	for _, s := range c {
		all += overlap(s.from, s.to, from, to)
	}
	return all
}

func overlap(from, to, start, end time.Time) time.Duration {
	if from.Before(start) {
		from = start
	}
	if to.After(end) {
		to = end
	}
	return max(0, to.Sub(from))
}

// split divides the age of the oldest record by what kept it waiting.
func (m *memory) split(age float64, seen covered, now time.Time) []Share {
	from := now.Add(-time.Duration(age * float64(time.Second)))
	by := map[Cause]time.Duration{}
	var held, heldSeen time.Duration
	end := now
	for _, s := range slices.Backward(m.spans) {
		to := s.To
		if s.Open {
			to = now
		}
		if to.After(end) {
			to = end
		}
		d := overlap(s.From, to, from, end)
		by[s.Cause] += d
		held += d
		if d > 0 {
			start := s.From
			if start.Before(from) {
				start = from
			}
			heldSeen += seen.within(start, to)
			end = start
		}
	}
	total := now.Sub(from)
	looked := min(total-held, max(0, seen.within(from, now)-heldSeen))
	by[CauseBacklog] += looked
	by[CauseUnknown] += max(0, total-held-looked)
	shares := []Share{}
	for cause, d := range by {
		if d >= time.Millisecond {
			shares = append(shares, Share{cause, d.Seconds()})
		}
	}
	slices.SortFunc(shares, func(x, y Share) int { return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Cause, y.Cause)) })
	return shares
}
