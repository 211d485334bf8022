package main

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// runParts runs the parts of a campaign: field and cell at the same time, or one alone. A short one runs the cell afterwards,
// each fault once.
func (c campaign) runParts(ctx context.Context, only string) error {
	switch {
	case only == fieldPart:
		return c.run(ctx)
	case only == cellPart:
		setting := history.Setting{Seed: c.seed, For: c.length}
		return errors.Join(c.runCell(ctx), history.WriteAll(c.histories, history.SettingActor, []history.Setting{setting}))
	case c.length < atLength:
		if err := c.run(ctx); err != nil {
			return err
		}
		return c.runCell(ctx)
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return c.run(ctx) })
	both.Go(func() error { return c.runCell(ctx) })
	return both.Wait()
}

// runCell replaces the servers of a cell for as long as the campaign lasts. A short one inflicts each fault once.
func (c campaign) runCell(ctx context.Context) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	faults, err := chosenFaults(c.faults)
	if err != nil {
		return err
	}
	x, err := newCell(ctx, c, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	return x.run(ctx, faults, func() bool { return c.length < atLength || x.clock.Now() > c.length })
}
