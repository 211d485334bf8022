package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// rateSpan is how long a rate is measured: from the look of Read to another one.
const rateSpan = 500 * time.Millisecond

// Counted is how many records each process had delivered at a moment.
type Counted struct {
	At        time.Time // of this machine
	Sequences map[string]int64
}

// Count returns how many records each process has delivered by now.
func (r *StatusReader) Count(ctx context.Context) (Counted, error) {
	rows, err := r.store.List(ctx)
	if err != nil {
		return Counted{}, Reachable(err)
	}
	return countRows(rows), nil
}

func countRows(rows []cursor.Row) Counted {
	c := Counted{At: time.Now(), Sequences: map[string]int64{}}
	for _, row := range rows {
		c.Sequences[row.Process] = row.Sequence
	}
	return c
}

// CountOf returns how many records each process had delivered when its status was read.
func CountOf(all []Status) Counted {
	c := Counted{At: time.Now(), Sequences: map[string]int64{}}
	for _, s := range all {
		c.Sequences[s.Process] = s.Sequence
		if !s.looked.IsZero() {
			c.At = s.looked
		}
	}
	return c
}

// Since returns how many records a process delivered in a second since an earlier count; false if that is not known.
// Numbers leap after a restore, and then they count no records.
func (c Counted) Since(before Counted, process string) (perSecond float64, ok bool) {
	now, known := c.Sequences[process]
	then, was := before.Sequences[process]
	span := c.At.Sub(before.At).Seconds()
	if !known || !was || span <= 0 || now < then || now-then >= cursor.HistoryGap {
		return 0, false
	}
	return float64(now-then) / span, true
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
