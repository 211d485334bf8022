package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// restoreBehind puts a snapshot back on a server whose clock is behind, while a process is paused, and resumes that one when the
// clock has passed its cursor. What was stamped before the cursor is there by then. No read of the process met the clock, but a
// worker that watches the clock may have halted it.
func restoreBehind(ctx context.Context, c *cell, change *history.Change) error {
	process := c.stampedProcess()
	if out, err := c.command(ctx, "pause", process); err != nil {
		return fmt.Errorf("pause %s: %w\n%s", process, err, out)
	}
	paused, server := c.clock.Now(), c.database.primary()
	if err := server.Snapshot(ctx); err != nil {
		return err
	}
	rows, err := c.committed(ctx)
	if err != nil {
		return err
	}
	if err := c.awaitRows(ctx, rows+int64(20+c.random.IntN(40))); err != nil {
		return err
	}
	more := time.Second + time.Duration(c.random.IntN(3000))*time.Millisecond
	err = c.putBackByTheBook(ctx, change, func(ctx context.Context) error {
		if !pglocal.HasCompiler() {
			return server.PutBack(ctx)
		}
		return server.PutBackBehind(ctx, c.clock.Now()-paused+more)
	})
	if err != nil {
		return err
	}
	change.Detail += "; " + process + " was paused"
	for began := c.clock.Now(); !c.clockHasPassed(ctx, process) && c.metronome.since(began) < patience && pause(ctx, 50*time.Millisecond); {
	}
	return c.resume(ctx, process)
}

// stampedProcess is one of those whose table is read by its stamps.
func (c *cell) stampedProcess() string {
	var all []string
	for _, p := range cellProcesses(c.receivers) {
		if p.table == "stamped" {
			all = append(all, p.name)
		}
	}
	return all[c.random.IntN(len(all))]
}
