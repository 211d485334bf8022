package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// emptyReceivers has somebody empty every receiver that can be, or delete and make it anew, while processes send there. Then an
// operator seeks back to where the processes stood when what came before had been consumed: nothing may be missing.
func emptyReceivers(ctx context.Context, c *cell, change *history.Change) error {
	for _, r := range c.receivers {
		e, ok := r.(emptied)
		if !ok {
			continue
		}
		before, _, err := c.stand(ctx)
		if err != nil {
			return err
		}
		some, err := r.read(ctx)
		if err != nil {
			return fmt.Errorf("read the %s: %w", r.name(), err)
		}
		c.receipts = append(c.receipts, some...)
		if err := e.empty(ctx); err != nil {
			return fmt.Errorf("empty the %s: %w", r.name(), err)
		}
		change.Receiver += r.name() + " "
		if err := errors.Join(c.warmUp(ctx), c.seekAll(ctx, r, before)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cell) seekAll(ctx context.Context, r cellReceiver, to map[string]history.Standing) error {
	for _, p := range r.processes() {
		if err := c.seekBack(ctx, p.name, to[p.name].Position); err != nil {
			return err
		}
	}
	return nil
}
