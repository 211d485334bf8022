// Command order-loyalty takes orders and sends them to Kafka. A receiver there adds loyalty points for each order once,
// although it crashes. A watchdog alerts when an order waits longer than the objective allows: Kafka is away for a while.
// In the end the program compares the orders with the points.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	process = "orders"
	orders  = 100 // before Kafka is away, while it is, and after it
)

// 99 % of all events are to have their points within half a second. A real objective has more time, such as 5 s.
var lag = objective{percent: 99, within: 500 * time.Millisecond}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // what the library logs would hide the story
	if err := run(context.Background(), os.Getenv("DATABASE_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "order-loyalty:", err)
		os.Exit(1)
	}
}

// run plays the story in an empty database.
func run(ctx context.Context, address string, out io.Writer) error {
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := prepare(ctx, address, pool); err != nil {
		return err
	}
	kafka, err := startKafka()
	if err != nil {
		return err
	}
	defer kafka.Close()
	store, err := cursor.NewStore(pool, cursor.Config{})
	if err != nil {
		return err
	}
	s := story{pool: pool, store: store, kafka: kafka, out: out}
	return s.play(ctx)
}

type story struct {
	pool  *pgxpool.Pool
	store *cursor.Store
	kafka *broker
	out   io.Writer
}

// play runs the dispatcher, the receiver and the watchdog, each of which could be a program of its own.
func (s *story) play(ctx context.Context) error {
	dispatcher, closeSink, err := newDispatcher(s.pool, s.store, s.kafka.addresses())
	if err != nil {
		return err
	}
	defer closeSink()
	receiver, err := newReceiver(s.pool, s.kafka.addresses(), s.out)
	if err != nil {
		return err
	}
	dog, err := newWatchdog(s.pool, s.store, lag.within, s.out)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return dispatcher.Run(ctx) })
	all.Go(func() error { return receiver.run(ctx) })
	all.Go(func() error { return dog.run(ctx) })
	all.Go(func() error {
		defer stop()
		if err := s.tell(ctx, dog); err != nil {
			return err
		}
		return verdict(ctx, s.pool, s.out)
	})
	return all.Wait()
}

// tell takes orders, and breaks the objective on purpose.
func (s *story) tell(ctx context.Context, dog *watchdog) error {
	if err := takeOrders(ctx, s.pool, orders); err != nil {
		return err
	}
	if err := s.await(ctx, s.allAdded); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d orders have their points\n", orders)

	s.kafka.away.Store(true)
	fmt.Fprintln(s.out, "Kafka is away")
	if err := takeOrders(ctx, s.pool, orders); err != nil {
		return err
	}
	if err := s.await(ctx, func(context.Context) (bool, error) { return dog.alerts.Load(), nil }); err != nil {
		return err
	}
	if err := pause(ctx, lag.within); err != nil { // from here on, all of these orders are late
		return err
	}
	s.kafka.away.Store(false)
	fmt.Fprintln(s.out, "Kafka is back")
	if err := s.await(ctx, func(context.Context) (bool, error) { return !dog.alerts.Load(), nil }); err != nil {
		return err
	}

	if err := takeOrders(ctx, s.pool, orders); err != nil {
		return err
	}
	return s.await(ctx, s.allAdded)
}

// allAdded reports whether the receiver has all events.
func (s *story) allAdded(ctx context.Context) (all bool, err error) {
	err = s.pool.QueryRow(ctx, "SELECT (SELECT count(*) FROM public.outbox) <= (SELECT count(*) FROM loyalty.entry)").Scan(&all)
	return all, err
}

// await waits until done, and gives up if the process is halted.
func (s *story) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	for {
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		row, err := s.store.Look(ctx, process)
		if err != nil && !errors.Is(err, cursor.ErrUnknown) { // the dispatcher makes it
			return err
		}
		if row.State == cursor.Halted {
			return fmt.Errorf("%s is halted: %s", process, row.Failure.Error)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits for so long, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
