package judge

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
)

// checkStream: the server refuses what a superseded worker still sends, so that epochs only grow along a stream (I6).
func (v *Verdict) checkStream(f *feed) {
	if f.Sink != history.Stream {
		return
	}
	var epoch int64
	for _, a := range f.applied {
		if a.Epoch < epoch {
			v.broken("I6", f.Name, "message %d (%s) of the stream is of epoch %d, behind epoch %d", a.N, a.Key, a.Epoch, epoch)
		}
		epoch = max(epoch, a.Epoch)
	}
}

// inStream are the messages of a stream by their rows.
func (f *feed) inStream() map[int][]history.Applied {
	stored := map[int][]history.Applied{}
	for _, a := range f.applied {
		if rank := f.table.byKey[a.Key]; f.Sink == history.Stream && rank > 0 {
			stored[rank] = append(stored[rank], a)
		}
	}
	return stored
}

// memory is for how long a server may know the id of a message, beyond the tenth of a second that it is told to.
const memory = 2 * time.Second

// known reports whether the server may have dropped a row that an operator had sent again: it stands in the stream from
// before that decision, or from no long before, and its id was still known.
func (f *feed) known(s *segment, rank int) bool {
	for _, a := range f.stored[rank] {
		if a.Sequence <= s.sequence && a.T+memory > s.from {
			return true
		}
	}
	return false
}
