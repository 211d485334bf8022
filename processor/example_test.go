package processor_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

type Booking struct {
	ID       int64  `json:"id"`
	Customer string `json:"customer"`
}

// bookingSMS is what a service embeds: a typed handler for the rows of a table.
func bookingSMS(pool *pgxpool.Pool, send func(context.Context, Booking, processor.Delivery) error) (*processor.Process, error) {
	store, err := cursor.NewStore(pool, cursor.Config{})
	if err != nil {
		return nil, err
	}
	source, err := table.New(pool, table.Config{Table: "public.bookings"})
	if err != nil {
		return nil, err
	}
	return processor.New(processor.Config{
		Process:  "booking_sms",
		Store:    store,
		Source:   source,
		Start:    processor.Beginning,
		Dispatch: processor.Each(processor.JSON(send)),
	})
}

// A service runs a process in a goroutine beside its other work, until its context ends. Any number of its replicas
// may do so: one of them delivers.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	pool, drop := exampleDatabase(ctx)
	defer drop()

	sent := 0
	process, err := bookingSMS(pool, func(_ context.Context, b Booking, d processor.Delivery) error {
		fmt.Printf("%d: SMS to %s (attempt %d)\n", d.Sequence, b.Customer, d.Attempt)
		if sent++; sent == 3 {
			cancel() // in a service, SIGTERM does
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("stopped:", process.Run(ctx))
	// Output:
	// 1: SMS to Ada (attempt 1)
	// 2: SMS to Grace (attempt 1)
	// 3: SMS to Edsger (attempt 1)
	// stopped: <nil>
}

func exampleDatabase(ctx context.Context) (*pgxpool.Pool, func()) {
	address, drop, err := pgtest.Create(ctx, "example")
	if err != nil {
		panic(err)
	}
	if _, err = migrations.Up(ctx, migrations.Config{ConnString: address}); err != nil {
		panic(err)
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		panic(err)
	}
	_, err = pool.Exec(ctx, `
		CREATE TABLE public.bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL);
		CREATE INDEX ON public.bookings (created_at, id);
		INSERT INTO public.bookings (customer) VALUES ('Ada'), ('Grace'), ('Edsger')`)
	if err != nil {
		panic(err)
	}
	return pool, func() {
		pool.Close()
		if err := drop(context.Background()); err != nil {
			panic(err)
		}
	}
}
