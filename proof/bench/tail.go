package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// smallTail is the table that the others are held against.
	smallTail = 10_000
	// tailReads is how often each table is read in a round.
	tailReads = 200
)

var largeTails = []int{1_000_000, 5_000_000}

// flat is up to which ratio the cost of a read counts as the same: an index of five million rows is a level deeper.
const flat = 1.25

// measureTail holds reading at the end of large tables against reading at the end of a small one.
func measureTail(ctx context.Context, b *bench) ([]row, error) {
	var tails []*tail
	for _, size := range append([]int{smallTail}, largeTails...) {
		t, err := b.tail(ctx, size)
		if err != nil {
			return nil, err
		}
		tails = append(tails, t)
	}
	tails = append(tails, tails[0]) // once more: what differs from its double is noise
	var rows []row
	for _, found := range []int{0, 1} {
		more, err := b.readTails(ctx, tails, found)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// tail is a table to be read at its end.
type tail struct {
	*filled
	size   int // by name; rows is what -scale makes of it
	source *table.Source
}

func (b *bench) tail(ctx context.Context, size int) (*tail, error) {
	f, err := b.fill(ctx, fmt.Sprintf("tail_%d", size), b.scaled(size, 100), 1, 1)
	if err != nil {
		return nil, err
	}
	s, err := source(b.pool, f.name)
	return &tail{f, size, s}, err
}

// after is the position behind which so many records stand.
func (t *tail) after(found int) cursor.Position {
	if found == 0 {
		return t.end
	}
	return t.beforeLast
}

// read reads at the end of the table and returns how long it took, in microseconds.
func (t *tail) read(ctx context.Context, found int) (float64, error) {
	began := time.Now()
	page, err := t.source.Read(ctx, t.after(found), batchSize)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if len(page.Records) != found {
		return 0, fmt.Errorf("%d records were read at the end of %s instead of %d", len(page.Records), t.name, found)
	}
	return float64(took.Nanoseconds()) / 1000, nil
}

// readTails reads one table after the other, again and again. The first and the last are the same.
func (b *bench) readTails(ctx context.Context, tails []*tail, found int) ([]row, error) {
	medians := make([][]float64, len(tails)) // of the reads of each round
	for round := range rounds + 1 {
		took, err := readInTurn(ctx, tails, found, b.scaled(tailReads, 20))
		if err != nil {
			return nil, err
		}
		for i := range tails {
			if round > 0 {
				medians[i] = append(medians[i], spreadOf(took[i]).median)
			}
		}
	}
	small, double := medians[0], medians[len(tails)-1]
	noise := ratio(double, small)
	var rows []row
	for i := 1; i < len(tails)-1; i++ {
		rows = append(rows, row{
			name:   "tail",
			what:   fmt.Sprintf("read at the end of %s rows, %d new : the same of %s", figure(float64(tails[i].rows)), found, figure(float64(tails[0].rows))),
			value:  ratio(medians[i], small),
			target: target{flat, below},
			figures: fmt.Sprintf("%s : %s µs; the small table against itself %.2f (%.2f–%.2f)",
				figure(spreadOf(medians[i]).median), figure(spreadOf(small).median), noise.median, noise.low, noise.high),
		})
	}
	return rows, nil
}

func readInTurn(ctx context.Context, tails []*tail, found, times int) ([][]float64, error) {
	took := make([][]float64, len(tails))
	for range times {
		for i, t := range tails {
			one, err := t.read(ctx, found)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], one)
		}
	}
	return took, nil
}
