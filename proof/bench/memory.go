package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	largeRecords = 40
	largeBytes   = 20_000_000
)

// measureMemory takes the peak memory of processes of their own.
func measureMemory(ctx context.Context, b *bench) ([]row, error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	weighings := []struct {
		weighing
		what  string
		bound float64
	}{
		{weighing{Table: records.name, Records: records.rows, Batch: true},
			fmt.Sprintf("no-op `Batch`, %d a batch, draining %s records", batchSize, figure(float64(records.rows))), 64},
		{weighing{Table: "random", Records: largeRecords}, "that hardly compresses", 256},
		{weighing{Table: "repetitive", Records: largeRecords}, "that compresses well", 256},
	}
	size := b.scaled(largeBytes, 10_000)
	if err := b.fillLarge(ctx, "random", size, randomText); err != nil {
		return nil, err
	}
	if err := b.fillLarge(ctx, "repetitive", size, repetitiveText); err != nil {
		return nil, err
	}
	var rows []row
	for _, w := range weighings {
		peak, err := b.weigh(ctx, w.weighing)
		if err != nil {
			return nil, err
		}
		b.log.Info("memory", "table", w.Table, "peak MiB", peak)
		what := w.what
		if !w.Batch {
			what = fmt.Sprintf("`Each` over %d records of %s bytes %s", largeRecords, figure(float64(size)), w.what)
		}
		rows = append(rows, row{
			name: "memory", what: "peak memory of a process: " + what,
			value: spread{median: peak}, unit: " MiB", target: target{w.bound, below}, figures: "VmHWM, default GOGC",
		})
	}
	return rows, nil
}

// fillLarge makes a table of large records. They are made here: the server would take minutes.
func (b *bench) fillLarge(ctx context.Context, name string, size int, text func([]byte)) error {
	b.log.Info("filling a table", "table", name, "rows", largeRecords, "bytes", size)
	if err := b.create(ctx, name); err != nil {
		return err
	}
	large := make([]byte, size-len(`{"note": ""}`))
	text(large)
	for range largeRecords {
		_, err := b.pool.Exec(ctx, fmt.Sprintf("/* bench.large */ INSERT INTO bench.%s (payload) VALUES ($1)", name), `{"note": "`+string(large)+`"}`)
		if err != nil {
			return fmt.Errorf("fill table %s: %w", name, err)
		}
	}
	return b.settle(ctx, name)
}

// randomText is what no server compresses much.
func randomText(b []byte) {
	generator := rand.NewChaCha8([32]byte{})
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(b)+3))
	_, _ = generator.Read(raw) // never fails
	copy(b, base64.StdEncoding.EncodeToString(raw))
}

func repetitiveText(b []byte) {
	copy(b, bytes.Repeat([]byte("all work and no play "), len(b)/21+1))
}

// weighing is what a child is told to drain.
type weighing struct {
	Address string
	Table   string
	Records int
	Batch   bool // a Batch, else an Each
}

// weigh has a child drain a table from the beginning and returns its peak memory in MiB.
func (b *bench) weigh(ctx context.Context, w weighing) (float64, error) {
	w.Address = b.address
	cmd, err := command(ctx, taskDrain)
	if err != nil {
		return 0, err
	}
	// Not as an argument: other users would see the password in it.
	input, err := json.Marshal(w)
	if err != nil {
		return 0, err
	}
	cmd.Stdin = bytes.NewReader(input)
	output, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("weigh a child: %w", err)
	}
	var peak int64
	if err := json.Unmarshal(output, &peak); err != nil {
		return 0, fmt.Errorf("read what a child weighs: %w", err)
	}
	return float64(peak) / (1 << 20), nil
}

// drainAndWeigh is the child's part: it drains a table and writes the most memory it had, in bytes.
func drainAndWeigh(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var w weighing
	if err := json.NewDecoder(stdin).Decode(&w); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, w.Address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := w.drain(ctx, pool); err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(peak)
}

func (w weighing) drain(ctx context.Context, pool *pgxpool.Pool) error {
	store, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	if err != nil {
		return err
	}
	records, err := source(pool, w.Table)
	if err != nil {
		return err
	}
	dispatch := touchEach()
	if w.Batch {
		dispatch = noBatch()
	}
	p, err := processor.New(processor.Config{Process: "memory-" + w.Table, Store: store, Source: records, Start: processor.Beginning, Dispatch: dispatch.Dispatch, Batch: batchSize})
	if err != nil {
		return err
	}
	if err := p.Drain(ctx); err != nil {
		return err
	}
	if got := dispatch.delivered(); got != w.Records {
		return fmt.Errorf("%d records were delivered instead of %d", got, w.Records)
	}
	return context.Cause(ctx)
}

// touchEach is a sink that looks at every byte.
func touchEach() counted {
	n := 0
	return counted{processor.Each(processor.SinkFunc(func(_ context.Context, d processor.Delivery) error {
		n++
		if bytes.IndexByte(d.Payload, 0) >= 0 {
			return errors.New("a zero byte in JSON")
		}
		return nil
	})), func() int { return n }}
}
