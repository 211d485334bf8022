package daemon

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// also returns further facts beside the hold of a process. They bear on what to do first, so they are not left for
// after the hold.
func (s Status) also() []Hold {
	switch {
	case s.Hold != nil && s.Hold.Kind == HoldNobody: // which includes it
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

// maxLooks bounds how many sources are looked at at once.
const maxLooks = 16

// each calls f for every process, for several at once: while tables are locked, each look waits.
func (r *StatusReader) each(ctx context.Context, all []Status, f func(context.Context, *Status)) {
	var group errgroup.Group
	group.SetLimit(int(min(maxLooks, r.pool.Config().MaxConns)))
	for i := range all {
		group.Go(func() error {
			f(ctx, &all[i])
			return nil
		})
	}
	_ = group.Wait() // f keeps the errors
}
