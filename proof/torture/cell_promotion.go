package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// promoting is a fault that makes a standby and promotes it. A standby that does not become the primary is ended.
func promoting(
	newStandby func(*cell, context.Context, *history.Change) (*pglocal.Server, error),
	promote func(context.Context, *cell, *history.Change, *pglocal.Server) error,
) func(context.Context, *cell, *history.Change) error {
	return func(ctx context.Context, c *cell, change *history.Change) error {
		standby, err := newStandby(c, ctx, change)
		if err != nil {
			return err
		}
		if err = promote(ctx, c, change, standby); err != nil && c.database.primary() != standby {
			err = errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
		}
		return err
	}
}

func (c *cell) standby(ctx context.Context, _ *history.Change) (*pglocal.Server, error) {
	return c.database.primary().Standby(ctx)
}

// promoteSevered has a standby lose its primary, lets rows be committed and delivered that it does not get, crashes the primary
// and promotes the standby. Ids come again: a sequence writes 32 of them ahead into the log, so more rows than these are lost.
// If the standby's clock is behind, rows that take the ids of lost ones are stamped before what the receivers have of these.
func promoteSevered(ctx context.Context, c *cell, _ *history.Change, standby *pglocal.Server) error {
	if err := errors.Join(c.awaitStandby(ctx), sever(ctx, standby), c.awaitLost(ctx, int64(100+c.random.IntN(60)))); err != nil {
		return err
	}
	if err := c.database.primary().StopImmediate(ctx); err != nil {
		return err
	}
	old, number, err := c.promoteIt(ctx, standby)
	if err != nil {
		return err
	}
	c.lead(c.database.addr(), cutOff)
	return errors.Join(c.database.insist(ctx, heal), old.Restart(ctx), c.retire(ctx, old, number)) // nobody is led to old any more
}

// heal lets the standbys of a server follow it, of which a copy was severed.
func heal(conn *pgx.Conn) error {
	_, err := conn.Exec(context.Background(), "ALTER SYSTEM RESET primary_conninfo")
	return err
}

// sever has a standby receive nothing more, and returns when that is so.
func sever(ctx context.Context, standby *pglocal.Server) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := (&database{server: standby}).do(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		for n := 1; n > 0; pause(ctx, 10*time.Millisecond) {
			if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sever the standby: %w", err)
	}
	return nil
}
