package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

const (
	keptRate     = 5000 // rows a second
	keptStep     = 25   // rows of one INSERT
	keptFor      = 5 * time.Second
	keptInterval = time.Second // between two passes
	keptGrowth   = 1.25        // of the table from the first half of the time to the second
)

// measureRetention holds deliveries of a table under a steady load against the same with a rule of retention, and the
// size of the table in the second half of the time against its size in the first.
func measureRetention(ctx context.Context, b *bench) ([]row, error) {
	if err := b.vacuumOften(ctx); err != nil {
		return nil, err
	}
	without, err := b.keepUp(ctx, "kept_all", false)
	if err != nil {
		return nil, err
	}
	with, err := b.keepUp(ctx, "kept_new", true)
	if err != nil {
		return nil, err
	}
	b.log.Info("retention", "seconds", b.seconds, "delivered_without", without.rate, "delivered_with", with.rate,
		"bytes_without", without.last, "bytes_with", with.last, "most_bytes_of_first_half", with.early, "most_bytes_of_second_half", with.late, "rows_left", with.rows)
	if grown := float64(with.late) / float64(with.early); grown > keptGrowth {
		return nil, fmt.Errorf("the table with its indexes grew to %.2f of its size with retention on: at most %.2f", grown, keptGrowth)
	}
	what := fmt.Sprintf("no-op `Batch` at %d inserts a second for %d s, `keep: %v` : the same without retention", keptRate, b.seconds, keptFor)
	return []row{versus("retention", what, []float64{with.rate}, []float64{without.rate}, target{0.9, atLeast})}, nil
}

// vacuumOften has autovacuum look at tables ten times in the time of the measurement, but not more rarely than by
// default, once a minute. Deleted rows take space until then, so a short measurement would see no bound.
func (b *bench) vacuumOften(ctx context.Context) error {
	if _, err := b.pool.Exec(ctx, fmt.Sprintf("ALTER SYSTEM SET autovacuum_naptime = %d", min(60, b.seconds/10))); err != nil {
		return err
	}
	_, err := b.pool.Exec(ctx, "SELECT pg_reload_conf()")
	return err
}

// kept is the result of one load.
type kept struct {
	rate              float64 // deliveries a second
	early, late, last int64   // bytes of the table and its indexes
	rows              int64
}

// keepUp inserts for b.seconds while a process delivers.
func (b *bench) keepUp(ctx context.Context, name string, prune bool) (k kept, err error) {
	if _, err := b.pool.Exec(ctx, fmt.Sprintf(createSQL+"; CREATE UNIQUE INDEX ON bench.%[1]s (created_at, id)", name)); err != nil {
		return k, err
	}
	records, err := source(b.pool, name)
	if err != nil {
		return k, err
	}
	var delivered atomic.Int64
	p, err := processor.New(processor.Config{Process: "bench-" + name, Store: b.store, Source: records, Start: processor.Beginning, Batch: batchSize, Logger: b.log,
		Dispatch: processor.Batch(processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
			delivered.Add(int64(len(ds)))
			return len(ds), nil
		}))})
	if err != nil {
		return k, err
	}
	within, cancel := context.WithTimeout(ctx, time.Duration(b.seconds)*time.Second)
	defer cancel()
	var all sync.WaitGroup
	errs := make(chan error, 4)
	together := func(f func() error) { all.Go(func() { errs <- f() }) }
	together(func() error { return p.Run(within) })
	together(func() error { return b.load(within, name, keptRate, keptStep) })
	together(func() error { return b.sizes(within, name, &k) })
	if prune {
		together(func() error { return b.pruneOften(within, name) })
	}
	all.Wait()
	close(errs)
	for one := range errs {
		err = errors.Join(err, one)
	}
	k.rate = float64(delivered.Load()) / float64(b.seconds)
	return k, errors.Join(err, context.Cause(ctx))
}

// load inserts so many rows a second, at times that were set before, and so many with one INSERT.
func (b *bench) load(ctx context.Context, name string, rate, step int) error {
	sql := fmt.Sprintf("/* bench.load */ INSERT INTO bench.%s (payload) SELECT $1::jsonb FROM generate_series(1, %d)", name, step)
	began := time.Now()
	for n := 0; ctx.Err() == nil; n += step {
		if early := time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))); early > 0 {
			time.Sleep(early)
		}
		if _, err := b.pool.Exec(ctx, sql, payload(n)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("insert: %w", err)
		}
	}
	return nil
}

// sizes notes the most bytes of each half of the time.
func (b *bench) sizes(ctx context.Context, name string, k *kept) error {
	half := time.Now().Add(time.Duration(b.seconds) * time.Second / 2)
	for {
		var size int64
		err := b.pool.QueryRow(ctx, "SELECT pg_total_relation_size($1::text::regclass)", "bench."+name).Scan(&size)
		if ctx.Err() != nil {
			return b.pool.QueryRow(context.WithoutCancel(ctx), fmt.Sprintf("SELECT pg_total_relation_size('bench.%s'), (SELECT count(*) FROM bench.%[1]s)", name)).Scan(&k.last, &k.rows)
		}
		if err != nil {
			return err
		}
		if time.Now().Before(half) {
			k.early = max(k.early, size)
		} else {
			k.late = max(k.late, size)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// pruneOften carries out a rule, as a worker does.
func (b *bench) pruneOften(ctx context.Context, name string) error {
	records, err := source(b.pool, name)
	if err != nil {
		return err
	}
	config := retention.Config{Rule: retention.Rule{Keep: keptFor}, Operator: operator.New(b.store), Source: records,
		Readers: []retention.Reader{{Process: "bench-" + name, Source: records, Start: processor.Beginning, Listed: true}}, Others: []string{"bench-kept_all"}}
	for ctx.Err() == nil {
		report, err := retention.Pass(ctx, config)
		if err != nil && ctx.Err() == nil {
			return err
		}
		b.log.Debug("pruned", "rows", report.Rows, "transactions", report.Batches)
		select {
		case <-ctx.Done():
		case <-time.After(keptInterval):
		}
	}
	return nil
}
