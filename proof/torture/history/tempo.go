package history

import (
	"sort"
	"time"
)

// Beat is one stroke of a metronome: a little work that should take Nominal, begun Interval after the one before.
type Beat struct {
	T    time.Duration `json:"t"`    // when it was done
	Took time.Duration `json:"took"` // since it was due
}

// A beat takes half of the nominal time on a machine of 2026 that has nothing else to do. It is long enough to lose its turn on
// the processor to others, as daemons and commands do.
const (
	BeatInterval = 200 * time.Millisecond
	BeatNominal  = 20 * time.Millisecond
)

// Tempo says how much time is worth on the machine of a run. Where a beat takes three times as long as it should, a second
// is worth a third of one: so deadlines are as far away as the machine is busy. Without beats a second is a second.
type Tempo struct {
	at    []time.Duration
	worth []time.Duration // of the time up to then
}

// Forever is later than every time of a run.
const Forever = time.Duration(1<<63 - 1)

// Add appends a beat. Beats come in the order of time.
func (t *Tempo) Add(b Beat) {
	last, worth := time.Duration(0), time.Duration(0)
	if n := len(t.at); n > 0 {
		last, worth = t.at[n-1], t.worth[n-1]
	}
	if b.T <= last {
		return
	}
	passed := b.T - last
	if b.Took > BeatNominal {
		passed = time.Duration(float64(passed) * float64(BeatNominal) / float64(b.Took))
	}
	t.at, t.worth = append(t.at, b.T), append(t.worth, worth+passed)
}

// Between is what the time from one moment to another is worth.
func (t *Tempo) Between(from, to time.Duration) time.Duration { return t.worthAt(to) - t.worthAt(from) }

// After is the moment at which time worth d has passed since another one.
func (t *Tempo) After(from, d time.Duration) time.Duration {
	if from >= Forever-d {
		return Forever
	}
	return t.atWorth(t.worthAt(from) + d)
}

func (t *Tempo) worthAt(at time.Duration) time.Duration { return interpolate(t.at, t.worth, at) }

func (t *Tempo) atWorth(worth time.Duration) time.Duration { return interpolate(t.worth, t.at, worth) }

// interpolate maps a value of x to y. Before the first and behind the last, time is worth what it is.
func interpolate(x, y []time.Duration, value time.Duration) time.Duration {
	n := len(x)
	i := sort.Search(n, func(i int) bool { return x[i] >= value })
	switch {
	case n == 0:
		return value
	case i == n:
		return y[n-1] + (value - x[n-1])
	}
	x0, y0 := time.Duration(0), time.Duration(0)
	if i > 0 {
		x0, y0 = x[i-1], y[i-1]
	}
	return y0 + time.Duration(float64(value-x0)/float64(x[i]-x0)*float64(y[i]-y0))
}
