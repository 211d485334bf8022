package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// rateSpan is how long a rate is measured: from the look of Read to another one.
const rateSpan = 500 * time.Millisecond

// Counted is how far each process was at a moment.
type Counted struct {
	At   time.Time // of this machine
	Rows map[string]cursor.Row
}

// Count returns how far each process is now.
func (r *StatusReader) Count(ctx context.Context) (Counted, error) {
	rows, err := r.store.List(ctx)
	if err != nil {
		return Counted{}, Reachable(err)
	}
	return countRows(rows), nil
}

func countRows(rows []cursor.Row) Counted {
	c := Counted{At: time.Now(), Rows: map[string]cursor.Row{}}
	for _, row := range rows {
		c.Rows[row.Process] = row
	}
	return c
}

// CountOf returns how far each process was when its status was read.
func CountOf(all []Status) Counted {
	c := Counted{At: time.Now(), Rows: map[string]cursor.Row{}}
	for _, s := range all {
		c.Rows[s.Process] = s.Row
		if !s.looked.IsZero() {
			c.At = s.looked
		}
	}
	return c
}

// Since returns how many records a process delivered in a second since an earlier count; false if that is not known.
func (c Counted) Since(before Counted, process string) (perSecond float64, ok bool) {
	now, known := c.Rows[process]
	then, was := before.Rows[process]
	span := c.At.Sub(before.At).Seconds()
	n, counts := now.DeliveredSince(then)
	if !known || !was || span <= 0 || !counts {
		return 0, false
	}
	return float64(n) / span, true
}

// Rates returns how many records each process delivers in a second, for those that a worker runs. It looks again a
// moment after Read, if there is a worker.
func (r *StatusReader) Rates(ctx context.Context, all []Status) (map[string]float64, error) {
	if !slices.ContainsFunc(all, Status.Delivers) {
		return nil, nil
	}
	before := CountOf(all)
	if wait := rateSpan - time.Since(before.At); wait > 0 {
		r.pause(ctx, wait)
	}
	after, err := r.Count(ctx)
	if err != nil {
		return nil, err
	}
	return after.All(before, all), nil
}

// All returns the rates of the processes that a worker runs, since an earlier count.
func (c Counted) All(before Counted, all []Status) map[string]float64 {
	rates := map[string]float64{}
	for _, s := range all {
		if rate, ok := c.Since(before, s.Process); ok && s.Delivers() {
			rates[s.Process] = rate
		}
	}
	return rates
}

// Delivers reports whether a worker runs the process, as far as that is known, and nobody has stopped it.
func (s Status) Delivers() bool { return s.State == cursor.Running && !s.New && !s.absent && !s.unread }
