package main

import (
	"cmp"
	"slices"
	"time"
)

// takeOvers leaves out a kill after which nobody delivered.
func takeOvers(h history) []time.Duration {
	var result []time.Duration
	for _, k := range h.Kills {
		i := slices.IndexFunc(h.Deliveries, func(d delivery) bool { return d.Epoch > k.Held.Epoch })
		if i >= 0 {
			result = append(result, h.Deliveries[i].At.Sub(k.At))
		}
	}
	return result
}

// latencies measures from the COMMIT of a booking, and from its ripeness: the moment from which it could have been
// delivered in order, when the last transaction with an earlier booking had ended, one way or the other.
func latencies(log []entry, firsts []delivery) (all, own quantiles) {
	delivered := make(map[int64]time.Time, len(firsts))
	for _, d := range firsts {
		delivered[d.Booking] = d.At
	}
	log = slices.SortedFunc(slices.Values(log), func(a, b entry) int { return a.Booking.before(b.Booking) })
	var ripe time.Time
	var waits, shares []time.Duration
	for _, e := range log {
		if e.EndedAt.After(ripe) {
			ripe = e.EndedAt
		}
		if at, ok := delivered[e.Booking.ID]; ok && e.Committed {
			waits = append(waits, max(0, at.Sub(e.EndedAt)))
			shares = append(shares, max(0, at.Sub(ripe)))
		}
	}
	return quantilesOf(waits), quantilesOf(shares)
}

// quantiles of durations, by nearest rank.
type quantiles struct{ P50, P99, Max time.Duration }

func quantilesOf(durations []time.Duration) quantiles {
	if len(durations) == 0 {
		return quantiles{}
	}
	slices.SortFunc(durations, cmp.Compare)
	rank := func(percent int) time.Duration { return durations[(len(durations)*percent+99)/100-1] }
	return quantiles{P50: rank(50), P99: rank(99), Max: rank(100)}
}
