package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// conclude waits until every process has delivered what there is, dismisses the daemons, and leaves the histories.
func (c *cell) conclude(ctx context.Context) error {
	if err := c.recover(ctx, &history.Change{Patience: patience}); err != nil {
		return err
	}
	ends, err := c.ends(ctx)
	if err != nil {
		return err
	}
	for _, w := range c.workers {
		if err := w.terminate(ctx); err != nil {
			return err
		}
	}
	for _, r := range c.receivers {
		some, err := r.read(ctx)
		if err != nil {
			return fmt.Errorf("read the %s: %w", r.name(), err)
		}
		c.receipts = append(c.receipts, some...)
	}
	if err := c.books.audit(ctx, c.database.primary(), c.server()); err != nil {
		return err
	}
	return errors.Join(
		history.WriteAll(c.histories, history.CellReceiptsActor, c.receipts),
		history.WriteAll(c.histories, history.CellRowsActor, c.books.all()),
		history.WriteAll(c.histories, history.CellReignsActor, c.books.reigns),
		history.WriteAll(c.histories, history.CellChangesActor, c.changes),
		history.WriteAll(c.histories, history.CellEndsActor, ends))
}

const cellErrorsSQL = `/* torture.cell_errors */
SELECT process_name, coalesce(failed_error, '')
FROM dispatch.cursor
ORDER BY process_name
LIMIT 1000`

func (c *cell) ends(ctx context.Context) (all []history.CellEnd, err error) {
	at, last, err := c.stand(ctx)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	err = c.database.insist(ctx, func(conn *pgx.Conn) error {
		var process, reason string
		rows, _ := conn.Query(ctx, cellErrorsSQL)
		_, err := pgx.ForEachRow(rows, []any{&process, &reason}, func() error {
			why[process] = reason
			return nil
		})
		return err
	})
	for _, r := range c.receivers {
		_, empties := r.(emptied)
		for _, p := range r.processes() {
			all = append(all, history.CellEnd{
				Process: p.name, Table: p.table, Receiver: r.name(), Once: p.once, Emptied: empties,
				Cursor: at[p.name], Last: last[p.table], Error: why[p.name],
			})
		}
	}
	return all, err
}
