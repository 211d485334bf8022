package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// cellFault is one way to change the servers or the receivers of a cell.
type cellFault struct {
	name string // for -faults
	kind history.Kind
	// strike changes them, and returns when the database can be used again. Afterwards the cell waits for the processes.
	strike func(ctx context.Context, c *cell, change *history.Change) error
}

// cellFaults are all there are. Append: the order decides what a seed does.
func cellFaults() []cellFault {
	return []cellFault{
		{name: "lossy", kind: history.LossyPromotion, strike: promoting((*cell).standby, promoteSevered)},
		{name: "restore", kind: history.RestoreFiles, strike: restoreFiles},
		{name: "clock", kind: history.ClockBehind, strike: promoting((*cell).standbyBehind, promoteWhole)},
		{name: "hang", kind: history.HangPrimary, strike: promoting((*cell).standby, hangPrimary)},
		{name: "two", kind: history.TwoPrimaries, strike: promoting((*cell).standby, keepOldPrimary)},
		{name: "empty", kind: history.EmptyReceiver, strike: emptyReceivers},
		{name: "again", kind: history.RestoreAgain, strike: restoreAgain},
		{name: "late", kind: history.LossyBehind, strike: promoting((*cell).standbyBehind, promoteSevered)},
		{name: "paused", kind: history.RestoreBehind, strike: restoreBehind},
		{name: "step", kind: history.ClockStep, strike: promoting((*cell).standbySettable, stepClock)},
		{name: "crash", kind: history.LazyCrash, strike: crashLazily},
		{name: "moment", kind: history.RestoreMoment, strike: restoreMoment},
	}
}

// chosenFaults are those that names has, with commas between; "" = all.
func chosenFaults(names string) (chosen []cellFault, err error) {
	all := map[string]bool{}
	for _, f := range cellFaults() {
		all[f.name] = true
		if names == "" || slices.Contains(strings.Split(names, ","), f.name) {
			chosen = append(chosen, f)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if name != "" && !all[name] {
			return nil, fmt.Errorf("-faults %s: choose of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
	}
	return chosen, nil
}

const streamingSQL = `/* torture.streaming */
SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= $1::pg_lsn`

// awaitStandby waits until the standby has all that the primary has written by now.
func (c *cell) awaitStandby(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := c.database.insist(ctx, func(conn *pgx.Conn) error {
		var now string
		if err := conn.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&now); err != nil {
			return err
		}
		for n := 0; n == 0; pause(ctx, 10*time.Millisecond) {
			if err := conn.QueryRow(ctx, streamingSQL, now).Scan(&n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for the standby: %w", err)
	}
	return nil
}

// promoteIt makes a standby the primary of the cell. The address still leads to the old one, which is returned with its number.
func (c *cell) promoteIt(ctx context.Context, standby *pglocal.Server) (old *pglocal.Server, number int, err error) {
	if err := (&database{server: standby}).insist(ctx, promoteStandby); err != nil {
		return nil, 0, err
	}
	number = c.server()
	c.servers.Add(1)
	return c.database.replace(standby), number, nil
}

// retire reads what a server held that is the primary no more, and ends it.
func (c *cell) retire(ctx context.Context, server *pglocal.Server, number int) error {
	return errors.Join(c.books.audit(ctx, server, number), server.Stop(context.WithoutCancel(ctx)))
}

// committed is how many rows of the cell the primary has.
func (c *cell) committed(ctx context.Context) (n int64, err error) {
	err = c.database.insist(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM app.stamped) + (SELECT count(*) FROM app.bare)").Scan(&n)
	})
	return n, err
}

// awaitLost waits until so many rows more are committed, and until every process has delivered some of them that can.
func (c *cell) awaitLost(ctx context.Context, rows int64) error {
	before, err := c.committed(ctx)
	if err != nil {
		return err
	}
	if err := c.warmUp(ctx); err != nil {
		return err
	}
	return c.awaitRows(ctx, before+rows)
}

// awaitRows waits until so many rows are committed.
func (c *cell) awaitRows(ctx context.Context, rows int64) error {
	for began := c.clock.Now(); c.metronome.since(began) < 30*time.Second && pause(ctx, 50*time.Millisecond); {
		now, err := c.committed(ctx)
		if err != nil || now >= rows {
			return err
		}
	}
	return context.Cause(ctx)
}
