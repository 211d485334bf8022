package processor

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	// stuckAfter is how long a sink call may take to return after its context has ended, before the log
	// reports it.
	stuckAfter = 2 * time.Second
	// stuckAgain is when the log reports it once more, and twice as long after that.
	stuckAgain = time.Minute
)

// watchCall logs that a sink call goes on after the end of its context. No time-out can end a call that does
// not check its context. The returned function ends the watch.
func (s *shift) watchCall(ctx context.Context, ds []Delivery) (returned func()) {
	done := make(chan struct{})
	position, id := ds[0].Position, ds[0].ID // the caller reuses ds
	unwatch := context.AfterFunc(ctx, func() {
		ended := time.Now()
		for next := stuckAfter; ; next = max(stuckAgain, 2*next) {
			select {
			case <-done:
				return
			case <-time.After(next):
				s.log.Error("the sink call does not return, though its time is over: nothing more is delivered until it does, or the program ends",
					"position", visible.Cut(string(position)), "record_id", visible.Cut(id), "overdue", time.Since(ended).Round(time.Second), "cause", context.Cause(ctx))
			}
		}
	})
	return func() {
		unwatch()
		close(done)
	}
}
