package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// measureEach holds a durable advance after every record against plain durable updates of such a row.
func measureEach(ctx context.Context, b *bench) ([]row, error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.pool.Exec(ctx, plainCursorSQL); err != nil {
		return nil, fmt.Errorf("create a row to update: %w", err)
	}
	each := contestant{"each", func(ctx context.Context) (float64, error) {
		return b.drain(ctx, records.lastOf(), 1, noEach())
	}}
	update := contestant{"single-row UPDATE", func(ctx context.Context) (float64, error) { return b.update(ctx, records.last) }}
	results, err := b.alternate(ctx, each, update)
	if err != nil {
		return nil, err
	}
	const what = "no-op `Each`, checkpoint 1 : durable single-row `UPDATE` commits on one connection"
	return []row{versus("each", what, results[0], results[1], target{0.7, atLeast})}, nil
}

// plainCursorSQL makes a row as wide and as roomy as that of a cursor, without its trigger.
const plainCursorSQL = `/* bench.plain_cursor */
CREATE TABLE bench.plain_cursor (LIKE bench.cursor INCLUDING ALL)
	WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
INSERT INTO bench.plain_cursor (process_name) VALUES ('plain')`

const updateSQL = `/* bench.update */
UPDATE bench.plain_cursor
SET position = $2, sequence = sequence + 1, updated_at = clock_timestamp()
WHERE process_name = $1`

// update commits n times and returns the commits per second. pgx prepares the statement once and sends each in one
// network flush, in a transaction of its own.
func (b *bench) update(ctx context.Context, n int) (rate float64, err error) {
	err = b.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		began := time.Now()
		for i := range n {
			tag, err := conn.Exec(ctx, updateSQL, "plain", fmt.Sprintf("at.int:%s/%020d", began.Format(time.RFC3339Nano), i))
			if err != nil {
				return err
			}
			if tag.RowsAffected() != 1 {
				return fmt.Errorf("%s instead of one row", tag)
			}
		}
		rate = float64(n) / time.Since(began).Seconds()
		return nil
	})
	return rate, err
}
