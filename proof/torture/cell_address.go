package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// keepsOn is for how long the old primary accepts writes beside the new one.
const keepsOn = 5 * time.Second

// keepOldPrimary promotes the standby of a primary that goes on as if nothing had been. The address leads to the new one from
// then on, and the connections that there are stay where they are. Somebody goes on to write to the old one, too. Then the daemons go
// over, and once more to the old one and away from it.
func keepOldPrimary(ctx context.Context, c *cell, _ *history.Change, standby *pglocal.Server) error {
	if err := c.warmUp(ctx); err != nil {
		return err
	}
	if err := c.awaitStandby(ctx); err != nil {
		return err
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
	return errors.Join(c.goBack(ctx, old), c.retire(ctx, old, number))
}

const leftBehindSQL = `/* torture.left_behind */
SELECT count(*) FROM dispatch.cursor WHERE failed_class IS DISTINCT FROM '` + string(cursor.ClassOldPrimary) + `'`

// goBack leads the daemons, which know the new primary by then, to the old one, until every process has halted there. The operator
// decides nothing there.
func (c *cell) goBack(ctx context.Context, old *pglocal.Server) error {
	if err := c.warmUp(ctx); err != nil {
		return err
	}
	c.letAllLook(ctx)
	c.leadDaemons((&database{server: old}).addr())
	defer func() { c.leadDaemons(c.database.addr()) }()
	var left int
	for began := c.clock.Now(); c.metronome.since(began) < 30*time.Second && pause(ctx, 50*time.Millisecond); {
		err := (&database{server: old}).insist(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, leftBehindSQL).Scan(&left) })
		if err != nil || left == 0 {
			return err
		}
	}
	return errors.Join(context.Cause(ctx), fmt.Errorf("%d processes did not halt on the old primary", left))
}

// leadDaemons has the daemons alone find a server.
func (c *cell) leadDaemons(to string) {
	for _, w := range c.workers {
		w.database.Retarget(to)
		w.database.Cut()
	}
}
