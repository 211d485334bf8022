package kafka

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// written counts the requests of which at least a part was written: those with records, and those
// that end a transaction. Of those with records it also counts the ones whose answer was lost: the
// client sends them again by itself, and a no to that says nothing of the first time.
type written struct{ records, lost, ends atomic.Int64 }

// OnBrokerWrite is called by the client behind each write.
func (w *written) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, n int, _, _ time.Duration, _ error) {
	switch {
	case n == 0:
	case key == kmsg.Produce.Int16():
		w.records.Add(1)
	case key == kmsg.EndTxn.Int16():
		w.ends.Add(1)
	}
}

// OnBrokerE2E is called by the client at the end of each request: with its answer, or without.
func (w *written) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if key == kmsg.Produce.Int16() && e.BytesWritten > 0 && e.Err() != nil {
		w.lost.Add(1)
	}
}

// tally is a state of written.
type tally struct{ records, lost int64 }

func (w *written) tally() tally { return tally{w.records.Load(), w.lost.Load()} }

// since is what became of the requests of a window to so many partitions. It makes one batch for each: see the package comment.
func (w *written) since(before tally, partitions int) requests {
	now := w.tally()
	return requests{now.records > before.records, now.lost > before.lost, now.records-before.records > int64(partitions)}
}

// partitions counts those of a window.
func partitions(places []place) int {
	all := map[place]bool{}
	for _, p := range places {
		all[place{topic: p.topic, partition: p.partition}] = true
	}
	return len(all)
}

// requests are those of a window.
type requests struct {
	any   bool // at least one was written, in part
	lost  bool // the answer to one was lost
	again bool // one was sent again for sure: there are more than partitions
}
