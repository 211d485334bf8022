package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// operatorsWorkload is operators who do not know of each other, and act at once.
func operatorsWorkload() workload {
	w := workload{
		kinds: map[history.Kind]kind{
			history.OperatorsSkip:      poison(atOnce(skip, skip)),
			history.OperatorsDiffer:    poison(atOnce(skip, retry)),
			history.OperatorsSeek:      seekAtOnce,
			history.OperatorsReplay:    replayBy((*field).replayAtOnce),
			history.OperatorsReplayAll: replayBy((*field).replayAllAtOnce),
		},
		faults: map[string][]plan.Chance{},
	}
	for _, s := range commonWorkload().sources {
		for _, p := range s.readers() {
			w.faults[p.Name] = operatorsFaults(p.Process)
		}
	}
	return w
}

func operatorsFaults(p history.Process) []plan.Chance {
	seeks := plan.Chance{Weight: 1, Kind: history.OperatorsSeek}
	patience := 3 * time.Second
	switch {
	case p.Letters:
		return []plan.Chance{
			seeks,
			{Weight: 3, Kind: history.OperatorsReplay, Min: patience, Max: patience},
			{Weight: 2, Kind: history.OperatorsReplayAll, Min: patience, Max: patience},
		}
	case p.Sink == history.Webhook:
		return []plan.Chance{
			seeks,
			{Weight: 1, Kind: history.OperatorsSkip, Min: patience, Max: patience},
			{Weight: 1, Kind: history.OperatorsDiffer, Min: patience, Max: patience},
		}
	default:
		return []plan.Chance{seeks}
	}
}

// atOnce has two operators decide about a process. One of them may be told that there is nothing left to decide.
func atOnce(decisions ...func(context.Context, *field, string) error) func(context.Context, *field, string) error {
	return func(ctx context.Context, f *field, process string) error {
		var group sync.WaitGroup
		for _, decide := range decisions {
			group.Go(func() { _ = decide(ctx, f, process) })
		}
		group.Wait()
		return nil
	}
}

// seekAtOnce has two operators move a cursor, to two positions.
func seekAtOnce(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	errs := make([]error, 2)
	var group sync.WaitGroup
	for i := range errs {
		one := fault
		one.Kind, one.Choice = history.OperatorBack, fault.Choice>>(8*i)
		group.Go(func() { errs[i] = seek(ctx, f, one, func() {}) })
	}
	group.Wait()
	if errs[0] == nil || errs[1] == nil {
		return nil
	}
	return missedIf(errs[0])
}

// replayAtOnce has two operators replay one letter, or one of them discard it.
func (f *field) replayAtOnce(ctx context.Context, fault plan.Fault, id int64) {
	f.lettersAtOnce(ctx, fault, strconv.FormatInt(id, 10))
}

// replayAllAtOnce is replayAtOnce for all open letters of the process.
func (f *field) replayAllAtOnce(ctx context.Context, fault plan.Fault, _ int64) {
	f.lettersAtOnce(ctx, fault, "--process", fault.Process, "--all")
}

func (f *field) lettersAtOnce(ctx context.Context, fault plan.Fault, of ...string) {
	second := "replay"
	if fault.Choice%3 == 0 {
		second = "discard"
	}
	var group sync.WaitGroup
	for _, command := range []string{"replay", second} {
		group.Go(func() { _ = f.letterCommand(ctx, command, of...) })
	}
	group.Wait()
}
