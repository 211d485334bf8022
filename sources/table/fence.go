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
// Unbounded means that nothing is known to be complete: a writer was there before the first sample, or when the clock
// stepped back. Then its stamps may be arbitrarily low.
//
// A writer that this sample sees for the first time took its lock after the last sample, so its stamps exceed the
// mark of the last sample. It keeps this bound as long as every sample sees it. A transaction that was prepared since
// then has a new name. Either it is one of the writers of the last sample, which this sample may also show by its old
// name, or it began and was prepared between the two samples. It has the lowest bound of all these.
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

// lowestBound returns the lowest bound of the writers in the last sample.
func (f *fence) lowestBound() int64 {
	lowest := int64(math.MaxInt64)
	for _, bound := range f.bounds {
		lowest = min(lowest, bound)
	}
	return lowest
}
