// Command product-events changes products. Each change goes to an exchange of RabbitMQ, from which a search indexer and
// a cache invalidator have it, each once, although both crash. In the end the program compares the products with the
// index and the cache.
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
	products = 40
	changes  = 2 // of each product
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // what the library logs would hide the story
	if err := run(context.Background(), os.Getenv("DATABASE_URL"), os.Getenv("AMQP_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "product-events:", err)
		os.Exit(1)
	}
}

// run plays the story in an empty database, with a broker.
func run(ctx context.Context, address, broker string, out io.Writer) error {
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := prepare(ctx, address, pool); err != nil {
		return err
	}
	cache := &cache{pool: pool}
	search, err := newSubscriber("search", pool, broker, out, index)
	if err != nil {
		return err
	}
	invalidator, err := newSubscriber("cache", pool, broker, out, cache.invalidate)
	if err != nil {
		return err
	}
	subscribers := []*subscriber{search, invalidator}
	for _, s := range subscribers {
		if err := s.subscribe(ctx); err != nil {
			return err
		}
		defer s.unsubscribe()
	}
	return play(ctx, pool, broker, cache, subscribers, out)
}

// play runs the dispatcher and the subscribers, each of which could be a program of its own.
func play(ctx context.Context, pool *pgxpool.Pool, broker string, cache *cache, subscribers []*subscriber, out io.Writer) error {
	store, err := cursor.NewStore(pool, cursor.Config{})
	if err != nil {
		return err
	}
	dispatcher, closeSink, err := newDispatcher(pool, store, broker)
	if err != nil {
		return err
	}
	defer closeSink()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return dispatcher.Run(ctx) })
	for _, s := range subscribers {
		all.Go(func() error { return s.run(ctx) })
	}
	all.Go(func() error {
		defer stop()
		if err := change(ctx, pool, cache); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d products are made and changed\n", products)
		if err := awaitAll(ctx, pool, store); err != nil {
			return err
		}
		return verdict(ctx, pool, cache, out)
	})
	return all.Wait()
}

// change makes all products, and changes them. A customer looks at each product before it is changed, so the cache has it.
func change(ctx context.Context, pool *pgxpool.Pool, cache *cache) error {
	for i := range products {
		if err := post(ctx, pool, product{ID: fmt.Sprint("p", i), Title: fmt.Sprintf("Product %d", i)}); err != nil {
			return err
		}
	}
	for revision := range changes {
		for i := range products {
			p := product{ID: fmt.Sprint("p", i), Title: fmt.Sprintf("Product %d, revision %d", i, revision+2)}
			if _, err := cache.get(ctx, p.ID); err != nil {
				return err
			}
			if err := post(ctx, pool, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitAll waits until both subscribers have all records.
func awaitAll(ctx context.Context, pool *pgxpool.Pool, store *cursor.Store) error {
	for {
		var all bool
		err := pool.QueryRow(ctx, `
			SELECT written.n <= (SELECT count(*) FROM search.inbox) AND written.n <= (SELECT count(*) FROM cache.inbox)
			FROM (SELECT count(*) AS n FROM public.outbox) written`).Scan(&all)
		if all || err != nil {
			return err
		}
		row, err := store.Look(ctx, process)
		if err != nil && !errors.Is(err, cursor.ErrUnknown) { // the dispatcher makes it
			return err
		}
		if row.State == cursor.Halted {
			return fmt.Errorf("%s is halted: %s", process, row.Failure.Error)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
