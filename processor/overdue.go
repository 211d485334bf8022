package processor

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	// overdueAfter is how long a sink call may take to return once its context has
	// ended, before that is news.
	overdueAfter = 2 * time.Second
	// overdueAgain is when it is said once more, and twice as long after that.
	overdueAgain = time.Minute
)

// watchCall says in the log that a sink call goes on behind the end of its context:
// no time-out can end a call that does not look. The returned function ends the
// watch.
func (s *shift) watchCall(ctx context.Context, ds []Delivery) (returned func()) {
	done := make(chan struct{})
	position, id := ds[0].Position, ds[0].ID // the caller takes ds back
	unwatch := context.AfterFunc(ctx, func() {
		ended := time.Now()
		for next := overdueAfter; ; next = max(overdueAgain, 2*next) {
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
