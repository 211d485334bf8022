package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

const (
	// crashes is how often the server ends in one fault: what its disk lacks is a matter of milliseconds.
	crashes = 3
	// frozenTime is for how long it stands still before: receivers get what was read, and the disk gets nothing.
	frozenTime = 200 * time.Millisecond
)

// crashLazily ends the server several times while producers commit without waiting for its disk. What it lost had an id, which the
// next row gets. One process alone delivers meanwhile: the advances of others would have the disk written.
func crashLazily(ctx context.Context, c *cell, change *history.Change) error {
	return c.alone(ctx, change, c.crashAtRecords)
}

// alone does something while one process delivers, and the others are paused.
func (c *cell) alone(ctx context.Context, change *history.Change, do func(context.Context) error) error {
	const alone = "cell_bare_hook"
	change.Detail = alone + " alone"
	for _, p := range cellProcesses(c.receivers) {
		if p.name == alone {
			continue
		}
		if out, err := c.command(ctx, "pause", p.name); err != nil {
			return fmt.Errorf("pause %s: %w\n%s", p.name, err, out)
		}
	}
	if err := do(ctx); err != nil {
		return err
	}
	for _, p := range cellProcesses(c.receivers) {
		if err := c.resume(ctx, p.name); err != nil {
			return err
		}
	}
	return nil
}

func (c *cell) crashAtRecords(ctx context.Context) error {
	c.lazy.Store(true)
	defer c.lazy.Store(false)
	server := c.database.primary()
	for range crashes {
		pause(ctx, time.Second) // for the session of the producer, and the daemons, to come back
		if err := c.atNextRecord(ctx, server.Freeze); err != nil {
			return err
		}
		pause(ctx, frozenTime)
		if err := errors.Join(server.Kill(ctx), server.Restart(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// atNextRecord calls strike when a webhook has a record and has not answered yet: the cursor has not passed it.
func (c *cell) atNextRecord(ctx context.Context, strike func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	struck := make(chan error, 1)
	next := func() { struck <- strike() }
	for _, r := range c.receivers {
		if h, ok := r.(*hook); ok {
			h.next.Store(&next)
			defer h.next.Store(nil) // a strike that comes too late would freeze a server that is never thawed
		}
	}
	select {
	case err := <-struck:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for a record: %w", ctx.Err())
	}
}
