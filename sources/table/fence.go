package table

import "math"

// unbounded is the bound of a writer whose earliest stamp is not known.
const unbounded int64 = math.MinInt64

// writer is a transaction that one sample sees, or a session that may be about to begin one.
type writer struct {
	// id is its virtual transaction, or the session. When a transaction is prepared, it gets another id.
	id       string
	prepared bool
	// since is the earliest stamp that it can make, if dated.
	since int64
	dated bool
}

// sample is the result of one read, in the order in which the read saw it.
type sample struct {
	// server distinguishes one run of a server from another: the clocks and transactions of two runs must not be
	// compared.
	server string
	// mark is below every stamp that is made later: microseconds since 1970, or the last value of the sequence.
	mark    int64
	writers []writer
}

// fence computes the read bound from one sample after another. The zero value has seen no sample.
type fence struct {
	last   sample
	bounds map[string]int64 // of the writers in the last sample, by id
	holder writer           // the writer whose bound the last call returned, if it is below the mark
}

// next takes a sample and returns the bound: a row that is stamped below it, and is not visible yet, does not exist.
// Unbounded means that nothing is known to be complete.
//
// The bound is the mark, unless a writer may still make a lower stamp. A transaction that is not among the writers
// either ended before statement 2, so statement 3 sees its rows, or it will stamp later than the mark. Each case below
// proves the bound of one kind of writer: it cannot make a lower stamp. All of them together are held by
// TestFence_NeverPassesAnOpenTransaction (a model) and TestFence_EveryInterleaving (a server). The quoted names are
// cases of TestFence_Next.
func (f *fence) next(s sample) (result int64) {
	known := f.bounds != nil && f.last.server == s.server && f.last.mark <= s.mark
	floor := f.last.mark
	lowest := min(floor, f.lowestBound())
	bounds := make(map[string]int64, len(s.writers))
	result = s.mark
	for _, w := range s.writers {
		bound, seen := f.bounds[w.id]
		switch {
		case w.dated:
			// The server says since when: no stamp is older than the session's transaction and the message that it works
			// on. Its next message arrives after the mark.
			// "a dated writer is bounded by its date", TestActivity_BoundsASessionByTheMessageThatItIsAt
			bound = w.since
		case !known:
			// There is no earlier sample to compare with: it took its lock at an unknown time, on a clock that may
			// have been ahead or behind. Its stamps may be arbitrarily low, so everything waits until it ends.
			// TestRead_WriterOfTheFirstSampleHoldsEverythingBack, "another server knows none of the writers",
			// "behind a mark that steps back no writer has a bound: its stamp may be older"
			bound = unbounded
		case seen:
			// It is the transaction that the last sample saw, because a server gives an id to one transaction only. So
			// the proof of its bound still holds. "it keeps its bound while it is there"
		case w.prepared:
			// A transaction gets a new id when it is prepared. Either it was a writer of the last sample, under an id
			// that this sample may show as well: then it has one of those bounds. Or it took its lock after the last
			// sample: then the floor bounds it. Which one is not known, so it gets the lowest of them all.
			// "one that was prepared has the lowest bound of those that were there",
			// "one that was prepared in between has the mark before it"
			bound = lowest
		default:
			// The last sample did not see it, so it took its lock after statement 2 of that sample, and it stamps
			// after it has the lock. The mark of that sample was taken before its statement 2, so every stamp exceeds
			// the floor. "a new writer is bounded by the mark before it", "after a break it is new",
			// TestRead_LateCommitIsNotSkipped
			bound = floor
		}
		bounds[w.id] = bound
		if bound < result {
			result, f.holder = bound, w
		}
	}
	f.last, f.bounds = s, bounds
	return result
}

// lowestBound returns the lowest bound of the writers in the last sample.
func (f *fence) lowestBound() int64 {
	lowest := int64(math.MaxInt64)
	for _, bound := range f.bounds {
		lowest = min(lowest, bound)
	}
	return lowest
}
