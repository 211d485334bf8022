package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
)

// promoteBehind promotes a standby that has everything, and whose clock is behind by one to four seconds: what it stamps at
// first sorts before what was delivered.
func promoteBehind(ctx context.Context, c *cell, change *history.Change) error {
	standby, err := c.standbyBehind(ctx, change)
	if err != nil {
		return err
	}
	c.away() // so that nothing is written any more that the standby would not get
	if err := c.awaitStandby(ctx); err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	old, number, err := c.promoteIt(ctx, standby)
	if err != nil {
		return err
	}
	c.lead(c.database.addr())
	return c.retire(ctx, old, number)
}

// standbyBehind makes a standby whose clock is behind by one to four seconds.
func (c *cell) standbyBehind(ctx context.Context, change *history.Change) (*pglocal.Server, error) {
	behind := time.Second + time.Duration(c.random.IntN(3000))*time.Millisecond
	if !pglocal.HasCompiler() {
		change.Detail = "without a C compiler the clock went right"
		return c.database.primary().Standby(ctx)
	}
	return c.database.primary().StandbyBehind(ctx, behind)
}

const clockHasPassedSQL = `/* torture.clock_has_passed */
SELECT clock_timestamp() > substr(split_part(position, '/', 1), 8)::timestamptz
FROM dispatch.cursor
WHERE process_name = $1 AND position LIKE 'at.int:%'`

// clockHasPassed reports whether the database's clock has passed a cursor.
func (c *cell) clockHasPassed(ctx context.Context, process string) (has bool) {
	err := c.database.do(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, clockHasPassedSQL, process).Scan(&has) })
	return err == nil && has
}
