package kafka

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// fenceDelay is how long a fenced producer keeps away. It is longer than the processor waits under its lease. Before
// the sink is called again, the worker has to write down the failure and to take the lease anew.
const fenceDelay = 10 * time.Second

// fence keeps a fenced producer from fencing the producer that fenced it. In Kafka the last one to ask for the
// transactional id wins. It may be the worker of an old lease or of the present one, and neither knows which it is.
// The call of the old worker ends with its lease, and it gets no other lease. The present worker comes again with its
// lease, or with a larger epoch. So no worker asks twice under one epoch without a delay, in which an old lease is
// noticed.
type fence struct {
	epoch cursor.Epoch
	until time.Time
}

func (f *fence) raise(epoch cursor.Epoch) {
	*f = fence{max(f.epoch, epoch), time.Now().Add(fenceDelay)}
}

// check returns an error as long as the epoch has to keep away.
func (f *fence) check(epoch cursor.Epoch) error {
	if wait := time.Until(f.until); wait > 0 && epoch <= f.epoch {
		return &fencedError{wait}
	}
	return nil
}

// fencedError is the error of a call that came too early after a fence.
type fencedError struct{ wait time.Duration }

func (e *fencedError) Error() string {
	return fmt.Sprintf("another producer has taken its transactional_id, or an older copy of the broker's data was put back; the sink asks for it again in %v", e.wait.Round(time.Second))
}
