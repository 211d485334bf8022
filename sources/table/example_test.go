package table_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// A processor.Process reads a source by itself; this is what it does.
func Example() {
	ctx := context.Background()
	address, drop, err := pgtest.Create(ctx, "example")
	check(err)
	defer func() { check(drop(ctx)) }()
	pool, err := pgxpool.New(ctx, address)
	check(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, `
		CREATE TABLE bookings (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text NOT NULL,
			payload jsonb NOT NULL
		);
		CREATE INDEX ON bookings (created_at, id);
		INSERT INTO bookings (customer, payload) VALUES ('ann', '{"seats": 2}'), ('bob', '{"seats": 1}')`)
	check(err)

	source, err := table.New(pool, table.Config{Table: "bookings", Columns: table.Columns{Key: "customer", Payload: "payload"}})
	check(err)
	findings, err := source.Inspect(ctx)
	check(err)
	fmt.Println("findings:", len(findings))

	var after cursor.Position
	for {
		page, err := source.Read(ctx, after, 100)
		check(err)
		for _, r := range page.Records {
			fmt.Println(r.Table, r.ID, r.Key, string(r.Payload))
			after = r.Position
		}
		if len(page.Records) == 0 && !page.Waiting {
			break
		}
		time.Sleep(page.Due)
	}
	// Output:
	// findings: 0
	// public.bookings 1 ann {"seats": 2}
	// public.bookings 2 bob {"seats": 1}
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
