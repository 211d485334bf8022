package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const schema = "bench"

// batchSize is the default of processor.Config, and the page size of the plain SELECT.
const batchSize = 500

// bench is one run: a database, and what was made in it.
type bench struct {
	address string
	pool    *pgxpool.Pool
	scale   float64
	seconds int // of measurements that take a time
	log     *slog.Logger

	store     *cursor.Store
	records   *filled // made at first need
	processes int     // that were run, to name the next
}

func newBench(ctx context.Context, address string, scale float64, log *slog.Logger) (*bench, error) {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: address, Schema: schema}); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	store, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &bench{address: address, pool: pool, scale: scale, log: log, store: store}, nil
}

// scaled is a number of records, rows or bytes under -scale.
func (b *bench) scaled(n, least int) int { return max(least, int(float64(n)*b.scale)) }

// source reads a table that create made, with the defaults of an outbox.
func source(pool *pgxpool.Pool, name string) (*table.Source, error) {
	return table.New(pool, table.Config{Table: schema + "." + name, Columns: table.Columns{Payload: "payload"}})
}

// counted is a dispatch, and how many records it delivered.
type counted struct {
	processor.Dispatch
	delivered func() int
}

// drain runs a new process over a part of the records and returns the records per second. It has to deliver them all.
func (b *bench) drain(ctx context.Context, reads part, checkpoint int, dispatch counted) (float64, error) {
	records, err := source(b.pool, recordsTable)
	if err != nil {
		return 0, err
	}
	b.processes++
	p, err := processor.New(processor.Config{
		Process:    fmt.Sprintf("bench-%d", b.processes),
		Store:      b.store,
		Source:     records,
		Dispatch:   dispatch.Dispatch,
		Start:      reads.start,
		Batch:      batchSize,
		Checkpoint: checkpoint,
		Logger:     b.log,
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := p.Drain(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if got := dispatch.delivered(); got != reads.n {
		return 0, fmt.Errorf("%d records were delivered instead of %d", got, reads.n)
	}
	return float64(reads.n) / took.Seconds(), nil
}

// noEach is a sink that does nothing.
func noEach() counted {
	n := 0
	return counted{processor.Each(processor.SinkFunc(func(context.Context, processor.Delivery) error {
		n++
		return nil
	})), func() int { return n }}
}

// noBatch is a batch sink that does nothing.
func noBatch() counted {
	n := 0
	return counted{processor.Batch(processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
		n += len(ds)
		return len(ds), nil
	})), func() int { return n }}
}
