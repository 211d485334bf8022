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

// promoteWhole promotes a standby that has everything. If its clock is behind, what it stamps at first sorts before what was
// delivered.
func promoteWhole(ctx context.Context, c *cell, _ *history.Change, standby *pglocal.Server) error {
	c.away() // so that nothing is written any more that the standby would not get
	if err := c.awaitStandby(ctx); err != nil {
		return err
	}
	old, number, err := c.promoteIt(ctx, standby)
	if err != nil {
		return err
	}
	c.lead(c.database.addr())
	return c.retire(ctx, old, number)
}

// someSeconds are one to four.
func (c *cell) someSeconds() time.Duration {
	return time.Second + time.Duration(c.random.IntN(3000))*time.Millisecond
}

// stepClock has the clock of a running server step back by one to four seconds, and be right again after some polls, while a process
// is paused. Then the daemons are replaced, and the process is resumed, which it refuses until the operator has decided.
func stepClock(ctx context.Context, c *cell, change *history.Change, standby *pglocal.Server) error {
	if err := promoteWhole(ctx, c, change, standby); err != nil {
		return err
	}
	if err := c.warmUp(ctx); err != nil {
		return err
	}
	process := c.stampedProcess()
	if out, err := c.command(ctx, "pause", process); err != nil {
		return fmt.Errorf("pause %s: %w\n%s", process, err, out)
	}
	if pglocal.HasCompiler() {
		for _, behind := range []time.Duration{c.someSeconds(), 0} {
			if err := standby.SetBehind(behind); err != nil {
				return err
			}
			pause(ctx, stepTime)
		}
	}
	for _, w := range c.workers {
		if err := errors.Join(w.terminate(ctx), w.start(ctx)); err != nil {
			return err
		}
	}
	change.Detail += process + " was paused"
	return c.resume(ctx, process)
}

// resume sets a process running. It is refused while the process is halted over the clock, so it is tried until the operator has
// decided.
func (c *cell) resume(ctx context.Context, process string) (err error) {
	var out string
	for began := c.clock.Now(); c.metronome.since(began) < patience && pause(ctx, haltInterval); {
		if out, err = c.command(ctx, "resume", process); err == nil {
			return nil
		}
	}
	return fmt.Errorf("resume %s: %w\n%s", process, err, out)
}

// stepTime is some polls.
const stepTime = 4 * time.Second

// standbyBehind makes a standby whose clock is behind by one to four seconds.
func (c *cell) standbyBehind(ctx context.Context, change *history.Change) (*pglocal.Server, error) {
	return c.standbyBy(ctx, change, c.someSeconds())
}

// standbySettable makes a standby whose clock is right and can be set.
func (c *cell) standbySettable(ctx context.Context, change *history.Change) (*pglocal.Server, error) {
	return c.standbyBy(ctx, change, 0)
}

func (c *cell) standbyBy(ctx context.Context, change *history.Change, behind time.Duration) (*pglocal.Server, error) {
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
