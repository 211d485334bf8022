package daemon

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// also is what else is so beside the hold of a process. It bears on what to do first, so it is not left for when the
// hold is over.
func (s Status) also() []Hold {
	switch {
	case s.Hold != nil && s.Hold.Kind == HoldNobody: // which says it
		return nil
	case s.absent:
		return []Hold{{HoldNobody, s.unwatched()}}
	case s.promoted != "":
		return []Hold{{HoldPromoted, fmt.Sprintf("a standby was promoted since its last change of worker (%s), and workers may still deliver from the old primary; "+
			"next: fence the old primary, unless that is done", s.promoted)}}
	default:
		return nil
	}
}

// maxLooks bounds how many sources are looked at together.
const maxLooks = 16

// each calls f for every process, for several at once: where tables are locked, each look waits.
func (r *StatusReader) each(ctx context.Context, all []Status, f func(context.Context, *Status)) {
	var group errgroup.Group
	group.SetLimit(int(min(maxLooks, r.pool.Config().MaxConns)))
	for i := range all {
		group.Go(func() error {
			f(ctx, &all[i])
			return nil
		})
	}
	_ = group.Wait() // f keeps what went wrong
}
