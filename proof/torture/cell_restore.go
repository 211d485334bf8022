package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// restoreFiles takes a snapshot of the primary's files, lets rows be committed and delivered, and puts the files back: the same
// cluster, on the same timeline. The daemons live on, and notice it; or somebody does what the handbook says, and ends them
// first: new ones cannot notice it.
func restoreFiles(ctx context.Context, c *cell, change *history.Change) error {
	if err := c.database.primary().Snapshot(ctx); err != nil {
		return err
	}
	return putSnapshotBack(ctx, c, change)
}

// restoreMoment puts a snapshot back that lacks no advance, but a record that a receiver has and has not answered: no number of the
// cursor goes back. The daemons live on, and processes that are paused are told, too.
func restoreMoment(ctx context.Context, c *cell, change *history.Change) error {
	server := c.database.primary()
	return c.alone(ctx, change, func(ctx context.Context) error {
		if err := server.Snapshot(ctx); err != nil {
			return err
		}
		return c.atNextRecord(ctx, func() error { return c.putBack(ctx, server.PutBack) })
	})
}

// apart is more time than there may be between two histories of one row whose numbers are the same: see cursor.HistoryGap. By
// then the numbers of those that began shortly one after the other are no longer ahead of the clock.
const apart = 5 * time.Second

// restoreAgain puts a snapshot back twice. What begins in its row the second time must not go on below what began the first time.
func restoreAgain(ctx context.Context, c *cell, change *history.Change) error {
	once := *change
	once.Kind = history.RestoreFiles
	if err := restoreFiles(ctx, c, &once); err != nil {
		return err
	}
	if err := c.outlast(ctx, once); err != nil {
		return err
	}
	if !pause(ctx, apart) {
		return context.Cause(ctx)
	}
	change.From = c.clock.Now()
	return putSnapshotBack(ctx, c, change)
}

// putSnapshotBack restores the files of the last snapshot once more rows are committed and delivered.
func putSnapshotBack(ctx context.Context, c *cell, change *history.Change) error {
	server := c.database.primary()
	if err := c.awaitLost(ctx, int64(20+c.random.IntN(40))); err != nil {
		return err
	}
	if c.random.IntN(2) == 0 {
		change.Detail = "the daemons live on"
		c.letAllLook(ctx)
		return c.putBack(ctx, server.PutBack)
	}
	return c.putBackByTheBook(ctx, change, server.PutBack)
}

// putBackByTheBook does what the handbook says.
func (c *cell) putBackByTheBook(ctx context.Context, change *history.Change, restore func(context.Context) error) error {
	change.Detail = "the daemons are ended, and begun anew"
	for _, w := range c.workers {
		if err := w.terminate(ctx); err != nil {
			return err
		}
	}
	if err := c.putBack(ctx, restore); err != nil {
		return err
	}
	if out, err := c.command(ctx, "restored", "--all"); err != nil {
		return fmt.Errorf("say that it was restored: %w\n%s", err, out)
	}
	var faults []error
	for _, w := range c.workers {
		faults = append(faults, w.start(ctx))
	}
	return errors.Join(faults...)
}

// looks is within what time a daemon that stands by looks how a process stands, several times over.
const looks = 5 * time.Second

// letAllLook waits until each daemon has seen numbers that the snapshot has not: one that has not takes the old ones for
// those of now, until another one notices.
func (c *cell) letAllLook(ctx context.Context) {
	for began := c.clock.Now(); c.metronome.since(began) < looks && pause(ctx, 50*time.Millisecond); {
	}
}

// putBack has the primary begin anew on other files, while it is off the network.
func (c *cell) putBack(ctx context.Context, restore func(context.Context) error) error {
	c.away()
	if err := errors.Join(c.books.audit(ctx, c.database.primary(), c.server()), restore(ctx)); err != nil {
		return err
	}
	c.servers.Add(1)
	c.lead(c.database.addr())
	return nil
}
