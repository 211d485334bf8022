package main

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// hangs is for how long a primary answers nobody before the standby is promoted.
const hangs = 2 * time.Second

// hangPrimary stops all processes of the primary, while the kernel accepts connections for it, and promotes its standby. The
// address leads to that, and the connections that there are stay: only their clients can tell that nobody answers. When they
// have all come over, or did not, the old primary wakes.
func hangPrimary(ctx context.Context, c *cell, change *history.Change) error {
	standby, err := c.database.primary().Standby(ctx)
	if err != nil {
		return err
	}
	if err := c.awaitStandby(ctx); err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	if err := c.database.primary().Freeze(); err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	pause(ctx, hangs)
	old, number, err := c.promoteIt(ctx, standby)
	if err != nil {
		return errors.Join(err, c.database.primary().Thaw())
	}
	c.lead(c.database.addr())
	err = errors.Join(c.recover(ctx, change), old.Thaw())
	pause(ctx, time.Second) // for what was on its way there
	for _, l := range c.links {
		l.Cut()
	}
	return errors.Join(err, c.retire(ctx, old, number))
}
