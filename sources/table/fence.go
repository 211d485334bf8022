package table

import "math"

// unbounded is the bound of a writer whose earliest stamp is not known.
const unbounded int64 = math.MinInt64

// writer is a transaction seen in one sample, or a session that may be about to
// begin one.
type writer struct {
	// id is its virtual transaction, or the session. A prepared transaction has
	// another one than it had before.
	id       string
	prepared bool
	// since is the earliest stamp that it can make, if dated.
	since int64
	dated bool
}

// sample is what one read saw, in the order in which it was seen.
type sample struct {
	// server tells one run of a server from another, whose clock and
	// transactions are not to be compared.
	server string
	// mark is what any stamp made later exceeds: microseconds since 1970, or the
	// last value of the sequence.
	mark    int64
	writers []writer
}

// fence computes the read bound from one sample after another. The zero value
// has seen none.
type fence struct {
	last   sample
	bounds map[string]int64 // of the writers in the last sample, by id
	holder writer           // whose bound the last one returned is, if it is below the mark
}

// next takes a sample and returns the bound: what is stamped below it, and is
// not yet visible, does not exist. Unbounded means that nothing is known to be
// complete: a writer was there before the first sample, or when the clock stepped
// back: then nobody knows how low its stamps are.
//
// A writer first seen in this sample took its lock after the last one, so its
// stamps exceed that one's mark. It keeps this bound while it is seen without a
// break. A transaction that was prepared since then is a new name for one of
// the writers of the last sample, which this one may show by its old name as
// well, or began and was prepared in between: it has the lowest bound of all
// these.
func (f *fence) next(s sample) int64 {
	known := f.bounds != nil && f.last.server == s.server && f.last.mark <= s.mark
	floor := f.last.mark
	lowest := min(floor, f.lowestBound())
	bounds := make(map[string]int64, len(s.writers))
	result := s.mark
	for _, w := range s.writers {
		bound, seen := f.bounds[w.id]
		switch {
		case w.dated:
			bound = w.since
		case !known:
			bound = unbounded
		case seen:
		case w.prepared:
			bound = lowest
		default:
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

// lowestBound is that of the writers in the last sample.
func (f *fence) lowestBound() int64 {
	lowest := int64(math.MaxInt64)
	for _, bound := range f.bounds {
		lowest = min(lowest, bound)
	}
	return lowest
}
