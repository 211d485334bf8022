package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

type booking struct {
	Seats int `json:"seats"`
}

// The update locks the booking, and then Add writes the record. So two transactions that change one booking write their
// records in the order of their changes.
func ExampleAdd() {
	ctx := context.Background()
	pool, drop := bookings(ctx)
	defer drop()

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE public.booking SET seats = 3 WHERE id = $1", "4711"); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, outbox.Record{
			Type: "booking.changed", AggregateType: "booking", AggregateID: "4711", Payload: booking{Seats: 3},
		})
	})
	check(err)

	show(ctx, pool)
	// Output:
	// booking.changed 4711 {"seats": 3}
}

// A record that is refused is refused before anything is sent. So the transaction can go on.
func ExampleAddSQL() {
	ctx := context.Background()
	pool, drop := bookings(ctx)
	defer drop()
	db := stdlib.OpenDBFromPool(pool)

	tx, err := db.BeginTx(ctx, nil)
	check(err)
	defer func() {
		if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
			check(err)
		}
	}()
	_, err = tx.ExecContext(ctx, "DELETE FROM public.booking WHERE id = $1", "4711")
	check(err)
	record := outbox.Record{Type: "booking.cancelled", AggregateID: "4711", Payload: "lost: \x00"}
	var refused *outbox.RecordError
	if err := outbox.AddSQL(ctx, tx, record); errors.As(err, &refused) {
		fmt.Println(refused)
		record.Payload = nil
	}
	check(outbox.AddSQL(ctx, tx, record))
	check(tx.Commit())

	show(ctx, pool)
	// Output:
	// outbox: record 0: its Payload has a NUL (U+0000), which PostgreSQL holds in no text
	// booking.cancelled 4711 null
}

// bookings makes a database with business data and an outbox.
func bookings(ctx context.Context) (*pgxpool.Pool, func()) {
	address, drop, err := pgtest.Create(ctx, "example")
	check(err)
	pool, err := pgxpool.New(ctx, address)
	check(err)
	o, err := outbox.New(outbox.Config{})
	check(err)
	_, err = pool.Exec(ctx, o.SQL()+`
		CREATE TABLE public.booking (id text PRIMARY KEY, seats integer NOT NULL);
		INSERT INTO public.booking VALUES ('4711', 2)`)
	check(err)
	return pool, func() {
		pool.Close()
		check(drop(ctx))
	}
}

func show(ctx context.Context, pool *pgxpool.Pool) {
	rows, err := pool.Query(ctx, "SELECT concat_ws(' ', type, key, payload) FROM public.outbox ORDER BY created_at, id")
	check(err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(err)
	for _, line := range lines {
		fmt.Println(line)
	}
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
