// Command payment-feed sends usage events to a payment processor by signed webhooks, in order. The receiver is a program
// in Python. It refuses one event for good, so the feed halts. The operator corrects the row and lets the feed go on. In
// the end the program compares the usage with the charges.
package main

import (
	"context"
	"crypto/rand"
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
	events = 60
	poison = 30 // this one has a currency that the receiver does not know
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // what the library logs would hide the story
	ctx := context.Background()
	python, err := findPython(ctx)
	if err == nil {
		err = run(ctx, os.Getenv("DATABASE_URL"), paymentProcessor{python: python, repository: "."}, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "payment-feed:", err)
		os.Exit(1)
	}
}

// run plays the story in an empty database.
func run(ctx context.Context, address string, payments paymentProcessor, out io.Writer) error {
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := prepare(ctx, address, pool); err != nil {
		return err
	}
	secret := rand.Text() // both ends have it
	url, closePayments, err := payments.start(ctx, address, secret)
	if err != nil {
		return err
	}
	defer closePayments()
	store, err := cursor.NewStore(pool, cursor.Config{})
	if err != nil {
		return err
	}
	dispatcher, err := newDispatcher(pool, store, url, secret)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return dispatcher.Run(ctx) })
	all.Go(func() error {
		defer stop()
		if err := use(ctx, pool); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d usage events are written\n", events)
		if err := (operator{pool: pool, store: store, out: out}).resolve(ctx); err != nil {
			return err
		}
		if err := awaitAll(ctx, store); err != nil {
			return err
		}
		return verdict(ctx, pool, out)
	})
	return all.Wait()
}

// awaitAll waits until all events are delivered.
func awaitAll(ctx context.Context, store *cursor.Store) error {
	row, err := await(ctx, store, func(row cursor.Row) bool { return row.Sequence >= events || row.State == cursor.Halted })
	if err == nil && row.State == cursor.Halted {
		return fmt.Errorf("%s is halted again: %s", process, row.Failure.Error)
	}
	return err
}

// await looks at the cursor until done.
func await(ctx context.Context, store *cursor.Store, done func(cursor.Row) bool) (cursor.Row, error) {
	for {
		row, err := store.Look(ctx, process)
		if errors.Is(err, cursor.ErrUnknown) {
			err = nil // the dispatcher makes it
		}
		if err != nil || done(row) {
			return row, err
		}
		select {
		case <-ctx.Done():
			return row, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// verdictSQL counts the usage events that are not charged as they are, at their place in the order.
const verdictSQL = `
SELECT count(used), count(charged), count(*) FILTER (WHERE used.usage IS DISTINCT FROM charged.usage)
FROM (SELECT row_number() OVER (ORDER BY id) AS n, (id, customer, cents, currency)::text AS usage FROM public.usage) used
FULL JOIN (SELECT row_number() OVER (ORDER BY id) AS n, (usage_id, customer, cents, currency)::text AS usage FROM payments.charge) charged USING (n)`

// verdict compares the usage with the charges.
func verdict(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	var used, charged, wrong int
	if err := pool.QueryRow(ctx, verdictSQL).Scan(&used, &charged, &wrong); err != nil {
		return err
	}
	fmt.Fprintf(out, "verdict: %d usage events, %d charges, %d of them missing, wrong, twice or out of order\n", used, charged, wrong)
	if wrong > 0 {
		return errors.New("the charges are not those of the usage")
	}
	return nil
}
