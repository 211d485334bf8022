package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// duel holds a sink that has many records on their way against the bare client of
// its broker, which has as many.
type duel struct {
	name   string
	what   string
	target float64 // at least
	window int
	// sink is given the records, publish the bare client n payloads.
	sink    processor.BatchSink
	publish func(ctx context.Context, n int) error
}

// fight runs both over the same payloads.
func (b *bench) fight(ctx context.Context, d duel) (row, error) {
	records, err := b.shared(ctx)
	if err != nil {
		return row{}, err
	}
	dispatcher := contestant{d.name, func(ctx context.Context) (float64, error) {
		n := 0
		counting := processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
			acknowledged, err := d.sink.DeliverBatch(ctx, ds)
			n += acknowledged
			return acknowledged, err
		})
		delivered := func() int { return n }
		return b.drain(ctx, records.beforeMany, records.many, d.window, counted{processor.Pipeline(counting), delivered})
	}}
	client := contestant{"bare client of " + d.name, func(ctx context.Context) (float64, error) {
		began := time.Now()
		err := d.publish(ctx, records.many)
		return float64(records.many) / time.Since(began).Seconds(), err
	}}
	results, err := b.alternate(ctx, dispatcher, client)
	if err != nil {
		return row{}, err
	}
	return row{
		name: d.name, what: d.what, value: ratio(results[0], results[1]), target: target{d.target, atLeast},
		figures: fmt.Sprintf("%s : %s records/s", figure(spreadOf(results[0]).median), figure(spreadOf(results[1]).median)),
	}, nil
}

// absent reports that a broker is not on this machine, and says so: it is then
// not measured.
func (b *bench) absent(err error) bool {
	if !errors.Is(err, broker.ErrMissing) {
		return false
	}
	b.log.Warn("not measured", "err", err)
	return true
}
