package main

import (
	"context"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// hangs is for how long a primary answers nobody before the standby is promoted.
const hangs = 2 * time.Second

// hungPatience is above the longest wait for an answer, 90 s for a read: the knock of a worker that waits is answered by the
// server that has the address by now (docs/decisions/0043-a-server-that-hangs.md, "Not covered").
const hungPatience = 2 * time.Minute

// hangPrimary stops all processes of the primary, while the kernel accepts connections for it, and promotes its standby. The
// address leads to that, and the connections that there are stay: only their clients can tell that nobody answers. When they
// have all come over, or did not, the old primary wakes.
func hangPrimary(ctx context.Context, c *cell, change *history.Change, standby *pglocal.Server) error {
	change.Patience = hungPatience
	if err := c.awaitStandby(ctx); err != nil {
		return err
	}
	if err := c.database.primary().Freeze(); err != nil {
		return err
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
