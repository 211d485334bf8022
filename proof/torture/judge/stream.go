package judge

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
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
