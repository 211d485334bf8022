package processor

import (
	"context"
	"fmt"
	"time"
)

// lockedAfter is how long the database may take to write something down before the worker asks which
// transaction that waits for.
const lockedAfter = 3 * time.Second

// write calls f to write something down under the lease. If that takes long, the log and the error name the
// transaction that it waits for.
func (s *shift) write(f func(context.Context) error) error {
	found := make(chan string, 1)
	slow := time.AfterFunc(lockedAfter, func() { found <- s.blocker() })
	err := f(context.WithoutCancel(s.run))
	if slow.Stop() || err == nil {
		return err
	}
	if blocker := <-found; blocker != "" {
		return fmt.Errorf("%w: it waited for %s", err, blocker)
	}
	return err
}

// blocker names the transaction that the lease waits for at a lock; "" if it does not wait.
func (s *shift) blocker() string {
	all, err := s.config.Store.Blockers(context.WithoutCancel(s.run), s.config.Process)
	if err != nil || len(all) == 0 {
		return ""
	}
	text := all[0].Lock() + "; " + all[0].Advice()
	s.log.Warn("nothing more is delivered until a lock is free: the worker cannot write down what happened to a record", "waits_for", text)
	return text
}
