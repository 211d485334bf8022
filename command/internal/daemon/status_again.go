package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// lookAgain keeps what is still there after a while. It waits once for all processes, because many may wait for one
// transaction.
func (r *StatusReader) lookAgain(ctx context.Context, all []Status) error {
	var wait time.Duration
	for _, s := range all {
		wait = max(wait, r.doubt(s))
	}
	if wait == 0 {
		return nil
	}
	r.pause(ctx, wait)
	if err := move(ctx, r.store, all); err != nil {
		return err
	}
	r.each(ctx, all, func(ctx context.Context, s *Status) {
		if len(s.Holding) == 0 {
			return
		}
		if err := s.stay(ctx, r.sources[s.Process]); err != nil {
			s.Problem = err.Error()
		}
	})
	for i := range all {
		if s := &all[i]; r.doubt(*s) > 0 && len(s.Holding) == 0 {
			if err := r.desert(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// move finds, among processes with writers, those that deliver the first record: a worker has it, or had it, so a
// writer does not hold it back.
func move(ctx context.Context, store *cursor.Store, all []Status) error {
	if !slices.ContainsFunc(all, func(s Status) bool { return len(s.Holding) > 0 }) {
		return nil
	}
	rows, err := store.List(ctx)
	if err != nil {
		return err
	}
	lockers, err := store.Lockers(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		s := &all[i]
		s.moving = slices.ContainsFunc(s.lockers, s.leads) || slices.ContainsFunc(lockers, s.leads) ||
			slices.ContainsFunc(rows, func(row cursor.Row) bool { return row.Process == s.Process && row.Position != s.Position })
	}
	return nil
}

// doubt returns after how long a second look decides what one cannot: whether writers stay, and whether a process has
// records to deliver and no worker. 0 means that there is no doubt.
func (r *StatusReader) doubt(s Status) time.Duration {
	p, known := r.process(s.Process)
	switch {
	case !known:
		return 0
	case s.due() && p.Limit == (processor.Limit{}):
		return stays + min(p.Poll, maxDueWait)
	case s.perhapsOverdue(p): // without times latency does not apply
		return stays + min(p.Poll, maxDueWait)
	case len(s.Holding) > 0 || s.overdue(p):
		return stays
	default:
		return 0
	}
}

// stays is how long a transaction must be seen to hold records back. Shorter ones come and go with every insert.
const stays = 250 * time.Millisecond

// stay drops the writers that are no longer there, and those that began after the record that a worker delivers now.
func (s *Status) stay(ctx context.Context, source *table.Source) error {
	now, err := source.Writers(ctx)
	s.Holding = slices.DeleteFunc(stayed(s.Holding, now), func(w table.Writer) bool { return s.moving && beganAfter(w, s.Lag.begun) })
	return err
}

// beganAfter reports whether it is known that a writer inserts nothing before the records that wait. For a prepared
// transaction the server knows when it was prepared, not when it began.
func beganAfter(w table.Writer, begun time.Time) bool {
	return w.GID == "" && !begun.IsZero() && w.Since.After(begun)
}

// stayed returns the writers of now that were there before. A session's long transaction differs from its next short
// one by its virtual id, or by when it began, which may be hidden.
func stayed(before, now []table.Writer) []table.Writer {
	return slices.DeleteFunc(now, func(w table.Writer) bool {
		return !slices.ContainsFunc(before, func(b table.Writer) bool {
			return b.PID == w.PID && b.GID == w.GID && b.Transaction == w.Transaction && b.Since.Equal(w.Since)
		})
	})
}
