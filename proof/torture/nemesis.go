package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// kind is one way to break something and to mend it again: it inflicts a fault, undoes it and returns when both are done. It
// calls begin right before the victim is harmed. errMissed means that it found no victim; any other error ends the run.
type kind func(ctx context.Context, f *field, fault plan.Fault, begin func()) error

// errMissed is a fault that met nobody: it does not count.
var errMissed = errors.New("missed")

// missed is errMissed with its reason.
func missed(err error) error { return fmt.Errorf("%w: %w", errMissed, err) }

// nemesis inflicts the faults of a plan.
type nemesis struct {
	field *field
	log   *history.Log
	kinds map[history.Kind]kind
}

// run inflicts all faults and returns when the last one is over. A track runs in one goroutine, so that the next fault of
// a victim waits for the one before it. On a busy machine a track may fall behind its plan: what has not begun after
// length is missed.
func (n *nemesis) run(ctx context.Context, faults []plan.Fault, length time.Duration, fail func(error)) {
	origin := n.field.clock.Now()
	tracks := map[string][]plan.Fault{}
	for _, f := range faults {
		victim := fmt.Sprint(f.Worker, "/", f.Process, "/", f.Table, "/", f.Broker, "/", f.Victim)
		tracks[victim] = append(tracks[victim], f)
	}
	var group sync.WaitGroup
	for _, track := range tracks {
		group.Go(func() {
			for _, fault := range track {
				if !pause(ctx, origin+fault.At-n.field.clock.Now()) {
					return
				}
				if n.field.clock.Now() > origin+length {
					n.note(fault, history.Missed, "its victim was busy with the faults before it")
					continue
				}
				if err := n.inflict(ctx, fault); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func (n *nemesis) inflict(ctx context.Context, fault plan.Fault) error {
	err := n.kinds[fault.Kind](ctx, n.field, fault, func() { n.note(fault, history.Begin, "") })
	switch {
	case errors.Is(err, errMissed):
		n.note(fault, history.Missed, err.Error())
	case err != nil:
		return fmt.Errorf("inflict fault %d (%s): %w", fault.ID, fault.Kind, err)
	default:
		n.note(fault, history.Ended, "")
	}
	return nil
}

func (n *nemesis) note(fault plan.Fault, phase history.Phase, detail string) {
	n.log.Note(history.Fault{
		T: n.field.clock.Now(), Phase: phase, ID: fault.ID, Kind: fault.Kind,
		Worker: fault.Worker, Process: fault.Process, Broker: fault.Broker, Detail: detail,
	})
}
