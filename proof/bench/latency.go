package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	arrivalsTable = "arrivals"
	arrivalRate   = 200 // a second
	// arrivalTime is how long records are inserted, after warmUpTime, which does not count.
	arrivalTime = 20 * time.Second
	warmUpTime  = 2 * time.Second
	// inserters have a connection each, so that a slow commit does not put off the next insert.
	inserters = 8
	// lastDelivery is how long the last record may take, before it counts as lost.
	lastDelivery = 30 * time.Second
)

// measureLatency takes the time from each commit to the delivery of its record, with default settings.
func measureLatency(ctx context.Context, b *bench) ([]row, error) {
	if err := b.create(ctx, arrivalsTable); err != nil {
		return nil, err
	}
	warmUp, total := b.scaled(int(warmUpTime.Seconds()*arrivalRate), 20), b.scaled(int(arrivalTime.Seconds()*arrivalRate), 100)
	a := &arrivals{committed: map[string]time.Time{}, delivered: map[string]time.Time{}, expected: warmUp + total, all: make(chan struct{})}
	if err := b.deliverWhile(ctx, a, func(ctx context.Context) error { return b.insertSteadily(ctx, a, warmUp) }); err != nil {
		return nil, err
	}
	latencies, err := a.latencies()
	if err != nil {
		return nil, err
	}
	figures := fmt.Sprintf("%s over %s records; the inserts themselves, by %d connections of the same process: %s",
		distribution(latencies), figure(float64(len(latencies))), inserters, distribution(slices.Sorted(slices.Values(a.inserts))))
	what := fmt.Sprintf("commit to delivery at %d inserts/s, default settings, p%%d", arrivalRate)
	return []row{
		{name: "latency", what: fmt.Sprintf(what, 50), value: spread{median: percentile(latencies, 50)}, unit: " ms", target: target{10, below}, figures: figures},
		{name: "latency", what: fmt.Sprintf(what, 99), value: spread{median: percentile(latencies, 99)}, unit: " ms", target: target{50, below}, figures: "as above"},
	}, nil
}

// distribution prints some sorted times in milliseconds.
func distribution(sorted []float64) string {
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, longest %s ms",
		figure(percentile(sorted, 50)), figure(percentile(sorted, 90)), figure(percentile(sorted, 99)), figure(sorted[len(sorted)-1]))
}

// arrivals remembers when records were committed and when they were delivered.
type arrivals struct {
	mu        sync.Mutex
	committed map[string]time.Time // without those of the warm-up
	inserts   []float64            // how long each of these took: a slow disk holds up what stands behind it
	delivered map[string]time.Time
	expected  int
	all       chan struct{} // closed when all are delivered
}

func (a *arrivals) commit(id string, began time.Time) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.committed[id] = now
	a.inserts = append(a.inserts, milliseconds(now.Sub(began)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Deliver makes arrivals a sink.
func (a *arrivals) Deliver(_ context.Context, d processor.Delivery) error {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delivered[d.ID] = now
	if len(a.delivered) == a.expected {
		close(a.all)
	}
	return nil
}

// latencies returns the sorted times from commit to delivery, in milliseconds.
func (a *arrivals) latencies() ([]float64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var result []float64
	for id, committed := range a.committed {
		delivered, ok := a.delivered[id]
		if !ok {
			return nil, fmt.Errorf("record %s was not delivered", id)
		}
		result = append(result, milliseconds(delivered.Sub(committed)))
	}
	if len(result) == 0 {
		return nil, errors.New("no record was committed")
	}
	slices.Sort(result)
	return result, nil
}

// deliverWhile runs a process until f has returned and everything is delivered.
func (b *bench) deliverWhile(ctx context.Context, a *arrivals, f func(context.Context) error) error {
	records, err := source(b.pool, arrivalsTable)
	if err != nil {
		return err
	}
	p, err := processor.New(processor.Config{Process: "bench-latency", Store: b.store, Source: records, Start: processor.Beginning, Dispatch: processor.Each(a), Logger: b.log})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()
	err = f(ctx)
	if err == nil {
		select {
		case <-a.all:
		case <-ctx.Done():
		case <-time.After(lastDelivery):
		}
	}
	stop()
	return errors.Join(err, <-ended, context.Cause(ctx))
}

const arriveSQL = `/* bench.arrive */
INSERT INTO bench.arrivals (payload)
VALUES ($1)
RETURNING id`

// connect opens a pool of so many connections.
func connect(ctx context.Context, address string, connections int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MinConns, config.MaxConns = connections, connections
	return pgxpool.NewWithConfig(ctx, config)
}

// insertSteadily inserts at times that were set before: what is late does not put off what comes after it.
func (b *bench) insertSteadily(ctx context.Context, a *arrivals, warmUp int) error {
	connections, err := connect(ctx, b.address, inserters)
	if err != nil {
		return err
	}
	defer connections.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	due := make(chan int, a.expected)
	var inserting sync.WaitGroup
	for range inserters {
		inserting.Go(func() {
			for n := range due {
				var id int64
				began := time.Now()
				if err := connections.QueryRow(ctx, arriveSQL, payload(n)).Scan(&id); err != nil {
					cancel(fmt.Errorf("insert: %w", err))
					return
				}
				if n >= warmUp {
					a.commit(strconv.FormatInt(id, 10), began)
				}
			}
		})
	}
	tick := time.NewTicker(time.Second / arrivalRate)
	defer tick.Stop()
	began := time.Now()
	for n := 0; n < a.expected && ctx.Err() == nil; {
		<-tick.C
		for ; n < a.expected && time.Since(began) >= time.Duration(n)*time.Second/arrivalRate; n++ {
			due <- n
		}
	}
	close(due)
	inserting.Wait()
	return context.Cause(ctx)
}
