package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// measureBatch holds draining a table against reading it.
func measureBatch(ctx context.Context, b *bench) ([]row, error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	drain := contestant{"batch", func(ctx context.Context) (float64, error) {
		return b.drain(ctx, records.allOf(), 1, noBatch())
	}}
	read := contestant{"paged SELECT", func(ctx context.Context) (float64, error) { return b.readPages(ctx, records) }}
	results, err := b.alternate(ctx, drain, read)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("no-op `Batch`, %d a batch, draining %s records : keyset-paged `SELECT` of the same rows", batchSize, figure(float64(records.rows)))
	return []row{versus("batch", what, results[0], results[1], target{0.75, atLeast})}, nil
}

// pageSQL is prepared once by pgx.
const pageSQL = `/* bench.page */
SELECT created_at, id, payload
FROM bench.records
WHERE (created_at, id) > ($1, $2)
ORDER BY created_at, id
LIMIT $3`

// plainRecord is a row of pageSQL. Into a json.RawMessage pgx would decode the payload; this copies its bytes.
type plainRecord struct {
	CreatedAt time.Time
	ID        int64
	Payload   []byte
}

// readPages reads the table as a program without a dispatcher would, and returns the rows per second.
func (b *bench) readPages(ctx context.Context, records *filled) (float64, error) {
	began := time.Now()
	n, last := 0, plainRecord{}
	for {
		rows, err := b.pool.Query(ctx, pageSQL, last.CreatedAt, last.ID, batchSize)
		if err != nil {
			return 0, err
		}
		page := make([]plainRecord, 0, batchSize)
		page, err = pgx.AppendRows(page, rows, scanPlain)
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			break
		}
		n += len(page)
		last = page[len(page)-1]
	}
	took := time.Since(began)
	if n != records.rows {
		return 0, fmt.Errorf("%d rows were read instead of %d", n, records.rows)
	}
	return float64(n) / took.Seconds(), nil
}

func scanPlain(row pgx.CollectableRow) (r plainRecord, err error) {
	return r, row.Scan(&r.CreatedAt, &r.ID, &r.Payload)
}
