package main

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	recordsTable = "records"
	allRecords   = 200_000
	// lastRecords are those that a contestant with a commit or a request for each record is given.
	lastRecords = 2_000
	// manyRecords are those of one that would take minutes for all.
	manyRecords = 20_000

	payloadBytes  = 200
	payloadDigits = payloadBytes - len(`{"note": ""}`)
)

// filled is a table of records.
type filled struct {
	name       string
	rows       int
	last, many int
	// beforeLast is the position before the last records, beforeMany that before
	// many of them, end that behind them.
	beforeLast, beforeMany, end cursor.Position
}

// part is what contestants send of a table: the n records from start to its end.
type part struct {
	start cursor.Position
	n     int
}

func (f *filled) allOf() part  { return part{processor.Beginning, f.rows} }
func (f *filled) manyOf() part { return part{f.beforeMany, f.many} }
func (f *filled) lastOf() part { return part{f.beforeLast, f.last} }

const createSQL = `/* bench.create */
CREATE TABLE bench.%s (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	payload    jsonb NOT NULL
)`

const indexSQL = `/* bench.index */
CREATE INDEX ON bench.%s (created_at, id)`

// create makes an empty table as an outbox would be.
func (b *bench) create(ctx context.Context, name string) error {
	for _, sql := range []string{createSQL, indexSQL} {
		if _, err := b.pool.Exec(ctx, fmt.Sprintf(sql, name)); err != nil {
			return fmt.Errorf("create table %s: %w", name, err)
		}
	}
	return nil
}

// payload is what insertSQL makes of a number: a JSON object that the server prints in 200 bytes.
func payload(n int) string { return fmt.Sprintf(`{"note": "%0*d"}`, payloadDigits, n) }

const insertSQL = `/* bench.insert */
INSERT INTO bench.%s (payload)
SELECT ('{"note": "' || lpad(i::text, $2, '0') || '"}')::jsonb
FROM generate_series(1, $1) i`

// fill makes a table of so many rows. The positions around the last of them come from the source itself.
func (b *bench) fill(ctx context.Context, name string, rows, many, last int) (*filled, error) {
	b.log.Info("filling a table", "table", name, "rows", rows)
	if err := b.create(ctx, name); err != nil {
		return nil, err
	}
	s, err := source(b.pool, name)
	if err != nil {
		return nil, err
	}
	f := &filled{name: name, rows: rows, last: last, many: many}
	for _, step := range []struct {
		rows int
		at   *cursor.Position
	}{{rows - many, &f.beforeMany}, {many - last, &f.beforeLast}, {last, &f.end}} {
		if *step.at, err = b.extend(ctx, s, name, step.rows); err != nil {
			return nil, err
		}
	}
	return f, b.settle(ctx, name)
}

// extend adds rows and returns the position behind them.
func (b *bench) extend(ctx context.Context, s *table.Source, name string, rows int) (cursor.Position, error) {
	tag, err := b.pool.Exec(ctx, fmt.Sprintf(insertSQL, name), rows, payloadDigits)
	if err != nil {
		return "", fmt.Errorf("fill table %s: %w", name, err)
	}
	if tag.RowsAffected() != int64(rows) {
		return "", fmt.Errorf("fill table %s: %s instead of %d rows", name, tag, rows)
	}
	return s.End(ctx)
}

// settle does now what the server would do later, in the middle of a round.
func (b *bench) settle(ctx context.Context, name string) error {
	if _, err := b.pool.Exec(ctx, "/* bench.vacuum */ VACUUM (ANALYZE) bench."+name); err != nil {
		return fmt.Errorf("vacuum table %s: %w", name, err)
	}
	return nil
}

// shared returns the one table that most contestants read.
func (b *bench) shared(ctx context.Context) (f *filled, err error) {
	if b.records == nil {
		rows := b.scaled(allRecords, 100)
		b.records, err = b.fill(ctx, recordsTable, rows, min(b.scaled(manyRecords, 50), rows), min(b.scaled(lastRecords, 20), rows))
	}
	return b.records, err
}
