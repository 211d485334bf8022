package main

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// A worker ends the session of a torn command after 35 s. Half of the faults outlast that.
const (
	shortestStrand = 2 * time.Second
	longestStrand  = 70 * time.Second
)

// strandWorkload is hosts that die, with their network, in the middle of a checkpoint: their server has half of a command
// and a locked row, and no time-out of its own counts for that.
func strandWorkload() workload {
	return workload{
		kinds: map[history.Kind]kind{history.StrandCommand: strandCommand},
		tracks: []plan.Track{{
			Victim: plan.Fault{Process: "clock_seven", Victim: "checkpoint"},
			Kinds:  []plan.Chance{{Weight: 1, Kind: history.StrandCommand, Min: shortestStrand, Max: longestStrand}},
			Min:    3 * time.Second, Max: 30 * time.Second,
		}},
	}
}

// strandCommand holds the rest of the next checkpoint of a process, on the one connection of the worker that makes it.
func strandCommand(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	over, cancel := context.WithTimeout(ctx, fault.For)
	defer cancel()
	struck := make(chan struct{}, len(f.links))
	for _, l := range f.links {
		found := l.HoldAt("COMMIT", fault.Process)
		defer l.Release()
		go func() {
			select {
			case <-found:
				struck <- struct{}{}
			case <-over.Done():
			}
		}()
	}
	<-over.Done()
	if len(struck) == 0 {
		return errMissed
	}
	return nil
}
