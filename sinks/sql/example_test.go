package sql_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

func Example() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 42 pays 12.50
}

func run(ctx context.Context) error {
	url, drop, err := pgtest.Create(ctx, "example")
	if err != nil {
		return err
	}
	defer func() { _ = drop(ctx) }()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE TABLE public.payments (booking bigint PRIMARY KEY, amount numeric)"); err != nil {
		return err
	}

	sink, err := sql.New(sql.Config{Statements: []string{`
		INSERT INTO public.payments (booking, amount)
		VALUES (@id, (@payload::jsonb->>'amount')::numeric)
		ON CONFLICT (booking) DO UPDATE SET amount = excluded.amount`}})
	if err != nil {
		return err
	}
	if err := sink.Check(ctx, conn); err != nil {
		return err
	}
	// processor.InTx(sink) does this in the transaction that advances the cursor.
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		return sink.DeliverTx(ctx, tx, processor.Delivery{
			Record: processor.Record{ID: "42", Payload: []byte(`{"amount": "12.50"}`)},
		})
	})
	if err != nil {
		return err
	}
	var booking, amount string
	if err := conn.QueryRow(ctx, "SELECT booking::text, amount::text FROM public.payments").Scan(&booking, &amount); err != nil {
		return err
	}
	fmt.Println(booking, "pays", amount)
	return nil
}
