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
// its broker, which has as many, in two forms.
type duel struct {
	name   string
	how    string
	target float64 // at least, of same
	window int
	reads  part
	// sink is given the records. same publishes n messages like the sink's, with its
	// headers, plain as many with their payloads alone.
	sink        processor.BatchSink
	same, plain func(ctx context.Context, n int) error
}

// fight has all of them send as many payloads in turn.
func (b *bench) fight(ctx context.Context, d duel) ([]row, error) {
	dispatcher := contestant{d.name, func(ctx context.Context) (float64, error) {
		n := 0
		counting := processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
			acknowledged, err := d.sink.DeliverBatch(ctx, ds)
			n += acknowledged
			return acknowledged, err
		})
		delivered := func() int { return n }
		return b.drain(ctx, d.reads, d.window, counted{processor.Pipeline(counting), delivered})
	}}
	results, err := b.alternate(ctx, dispatcher,
		alone("bare client of "+d.name, d.reads.n, d.same),
		alone("bare client of "+d.name+", payloads alone", d.reads.n, d.plain))
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s, window and checkpoint %d : ", d.name, d.window)
	return []row{
		versus(d.name, what+"the client alone, the same messages, "+d.how, results[0], results[1], target{d.target, atLeast}),
		versus(d.name, what+"the client alone, payloads without headers", results[0], results[2], target{}),
	}, nil
}

// alone is a contestant that publishes n messages without a dispatcher.
func alone(name string, n int, publish func(ctx context.Context, n int) error) contestant {
	return contestant{name, func(ctx context.Context) (float64, error) {
		began := time.Now()
		err := publish(ctx, n)
		return float64(n) / time.Since(began).Seconds(), err
	}}
}

// versus is the row of one contestant's rates against another's.
func versus(name, what string, ours, theirs []float64, t target) row {
	return row{
		name: name, what: what, value: ratio(ours, theirs), target: t,
		figures: fmt.Sprintf("%s : %s records/s", figure(spreadOf(ours).median), figure(spreadOf(theirs).median)),
	}
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
