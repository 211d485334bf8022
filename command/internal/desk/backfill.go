package desk

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// A backfill begins with so many records that wait, and is over when so few are left.
const (
	backfillFrom = 1000
	backfillTo   = 100
)

// backfill is where a process began to catch up.
type backfill struct {
	from      time.Time
	delivered int64
	position  cursor.Position
}

// noteBackfill begins or ends a backfill, by the status that was just read.
func (m *memory) noteBackfill(now time.Time) {
	lag := m.status.Lag
	switch {
	case lag == nil:
	case m.backfill != nil && (lag.Records < backfillTo || m.row.Position < m.backfill.position):
		m.backfill = nil
	case m.backfill == nil && lag.Records >= backfillFrom:
		m.backfill = &backfill{now, m.delivered, m.row.Position}
	}
}

// progress is how far a backfill has come; nil if there is none.
func (m *memory) progress(now time.Time) *Backfill {
	f, lag := m.backfill, m.status.Lag
	if f == nil || lag == nil {
		return nil
	}
	rate := m.rate()
	p := &Backfill{From: f.from, Done: m.delivered - f.delivered, Left: lag.Records, Estimated: lag.Records >= table.MaxLagRecords}
	if !p.Estimated {
		if rate != nil && *rate > 0 {
			seconds := float64(p.Left) / *rate
			p.TimeLeft = &seconds
		}
		p.Part = part(p.Done, p.Left)
		return p
	}
	// There are too many to count. The times of the positions show how far it is, if records come evenly.
	began, ok := table.Moment(f.position)
	at, has := table.Moment(m.row.Position)
	elapsed := now.Sub(f.from)
	if ok && has && elapsed > 0 && at.After(began) {
		speed := float64(at.Sub(began)) / float64(elapsed) // of the past going by
		if left := now.Sub(at); speed > 1 && left > 0 {
			seconds := left.Seconds() / (speed - 1)
			p.TimeLeft = &seconds
			if rate != nil {
				p.Left = max(p.Left, int64(seconds**rate))
			}
		}
	}
	p.Part = part(p.Done, p.Left)
	return p
}

func part(done, left int64) float64 {
	if done+left <= 0 {
		return 0
	}
	return float64(done) / float64(done+left)
}
