package live

import (
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// memory is how long a trace goes back.
	memory = 2 * time.Minute
	// rateSpan is over how long a rate is measured, so that it does not jump with each look.
	rateSpan = 5 * time.Second
	// leftSpan is over how long it is measured how fast records become fewer.
	leftSpan = 30 * time.Second
)

// point is what one look saw of a process.
type point struct {
	at      time.Time
	row     cursor.Row
	waiting int64 // -1: not known, or more than are counted
}

// trace is what was seen of a process, oldest first.
type trace []point

// add notes a look. A sequence that goes back or leaps counts no records, so the trace begins anew.
func (t trace) add(at time.Time, s daemon.Status) trace {
	p := point{at: at, row: s.Row, waiting: -1}
	if s.Lag != nil && s.Lag.Records < table.MaxLagRecords {
		p.waiting = s.Lag.Records
	}
	if n := len(t); n > 0 {
		if _, counts := p.row.DeliveredSince(t[n-1].row); !counts {
			t = nil
		}
	}
	t = append(t, p)
	for len(t) > 1 && at.Sub(t[0].at) > memory {
		t = t[1:]
	}
	return t
}

// since returns the last point that is at least so old, or else the first one.
func (t trace) since(span time.Duration) point {
	last := t[len(t)-1]
	for i := len(t) - 1; i > 0; i-- {
		if last.at.Sub(t[i].at) >= span {
			return t[i]
		}
	}
	return t[0]
}

// rate returns how many records are delivered in a second; false if there is only one look.
func (t trace) rate() (float64, bool) {
	if len(t) < 2 {
		return 0, false
	}
	from, to := t.since(rateSpan), t[len(t)-1]
	return float64(to.row.Sequence-from.row.Sequence) / to.at.Sub(from.at).Seconds(), true
}

// left returns when nothing will wait any more, if records go on to become fewer as in the last half minute; false if
// that is not known, or if they do not become fewer.
func (t trace) left() (time.Duration, bool) {
	if rate, ok := t.rate(); !ok || rate == 0 {
		return 0, false // it has stopped
	}
	from, to := t.since(leftSpan), t[len(t)-1]
	if from.waiting < 0 || to.waiting <= 0 || from.waiting <= to.waiting {
		return 0, false
	}
	fewer := float64(from.waiting-to.waiting) / to.at.Sub(from.at).Seconds()
	return time.Duration(float64(to.waiting) / fewer * float64(time.Second)).Round(time.Second), true
}

// bars are the heights of a curve.
const bars = "▁▂▃▄▅▆▇█"

// curve draws the rates of the last two minutes, the present at the right, in so many columns.
func (t trace) curve(width int) string {
	if len(t) < 2 {
		return strings.Repeat(" ", width)
	}
	end := t[len(t)-1].at
	step := memory / time.Duration(width)
	rates := make([]float64, width)
	most := 0.0
	for i := range width {
		from, to := end.Add(-memory+time.Duration(i)*step), end.Add(-memory+time.Duration(i+1)*step)
		rates[i] = t.between(from, to)
		most = max(most, rates[i])
	}
	var b strings.Builder
	heights := []rune(bars)
	for _, r := range rates {
		switch {
		case r < 0:
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune(heights[0])
		default:
			b.WriteRune(heights[min(len(heights)-1, int(r/most*float64(len(heights)-1)+0.5))])
		}
	}
	return b.String()
}

// between returns the rate between two moments; -1 if nothing was seen.
func (t trace) between(from, to time.Time) float64 {
	if !t[0].at.Before(to) {
		return -1
	}
	first, last := t.at(from), t.at(to)
	span := last.at.Sub(first.at).Seconds()
	if span <= 0 {
		return -1
	}
	return float64(last.row.Sequence-first.row.Sequence) / span
}

// at returns the last point at a moment or before, or else the first one.
func (t trace) at(moment time.Time) point {
	found := t[0]
	for _, p := range t {
		if p.at.After(moment) {
			break
		}
		found = p
	}
	return found
}

// rateText and leftText are cells.
func (t trace) rateText() string {
	if rate, ok := t.rate(); ok {
		return screen.Rate(rate)
	}
	return "-"
}

func (t trace) leftText() string {
	if left, ok := t.left(); ok {
		return screen.Age(left)
	}
	return "-"
}
