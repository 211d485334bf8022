package main

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// keepsOn is for how long the old primary accepts writes beside the new one.
const keepsOn = 5 * time.Second

// keepOldPrimary promotes the standby of a primary that goes on as if nothing had been. The address leads to the new one from
// then on, and the connections that there are stay where they are. Somebody goes on to write to the old one, too.
func keepOldPrimary(ctx context.Context, c *cell, _ *history.Change) error {
	standby, err := c.database.primary().Standby(ctx)
	if err != nil {
		return err
	}
	if err := c.warmUp(ctx); err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	if err := c.awaitStandby(ctx); err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	before := c.database.addr()
	old, number, err := c.promoteIt(ctx, standby)
	if err != nil {
		return err
	}
	c.lead(c.database.addr())
	c.address.Cut() // producers and operators have moved
	stale, cancel := context.WithTimeout(ctx, keepsOn)
	defer cancel()
	c.produce(stale, before)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for _, l := range c.links {
		l.Cut()
	}
	return c.retire(ctx, old, number)
}
