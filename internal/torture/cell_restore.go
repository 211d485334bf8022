package main

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
)

// restoreFiles takes a snapshot of the primary's files, lets rows be committed and delivered, and puts the files back: the same
// cluster, on the same timeline. The daemons live on.
func restoreFiles(ctx context.Context, c *cell, _ *history.Change) error {
	server := c.database.primary()
	if err := server.Snapshot(ctx); err != nil {
		return err
	}
	if err := c.awaitLost(ctx, int64(20+c.random.IntN(40))); err != nil {
		return err
	}
	c.away()
	if err := c.books.audit(ctx, server, c.servers); err != nil {
		return err
	}
	if err := server.PutBack(ctx); err != nil {
		return err
	}
	c.servers++
	c.lead(c.database.addr())
	return nil
}
