package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// moved is an event: an amount came to an account, or went.
type moved struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

// prepare makes the tables: the cursors, the outbox, and those of the two versions.
func prepare(ctx context.Context, address string, pool *pgxpool.Pool) error {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: address}); err != nil {
		return err
	}
	box, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, box.SQL()+`
		CREATE SCHEMA v1;
		CREATE TABLE v1.balance (account text PRIMARY KEY, cents bigint NOT NULL);
		CREATE SCHEMA v2;
		CREATE TABLE v2.balance (account text PRIMARY KEY, cents bigint NOT NULL, moves bigint NOT NULL);
		CREATE VIEW public.balance AS SELECT account, cents FROM v1.balance;`)
	return err
}

// credit adds an event to the balance of a version. The second one also counts.
var credit = map[string]string{
	"v1.balance": `INSERT INTO v1.balance AS b (account, cents) VALUES ($1, $2)
		ON CONFLICT (account) DO UPDATE SET cents = b.cents + excluded.cents`,
	"v2.balance": `INSERT INTO v2.balance AS b (account, cents, moves) VALUES ($1, $2, 1)
		ON CONFLICT (account) DO UPDATE SET cents = b.cents + excluded.cents, moves = b.moves + 1`,
}

// populator builds the table of a version from the beginning on.
func populator(ctx context.Context, pool *pgxpool.Pool, store *cursor.Store, process, balances string) (*processor.Process, error) {
	model, err := readmodel.New(
		readmodel.On("account.moved", func(ctx context.Context, tx pgx.Tx, m moved, _ processor.Delivery) error {
			_, err := tx.Exec(ctx, credit[balances], m.Account, m.Cents)
			return err
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", process, err)
	}
	// With Start the process would make its cursor once it runs. A comparison needs both cursors at once.
	if _, err := store.Create(ctx, process, ""); err != nil { // before all records
		return nil, err
	}
	source, err := table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox})
	if err != nil {
		return nil, err
	}
	return processor.New(processor.Config{
		Process: process, Store: store, Source: source, Dispatch: processor.InTx(model), Checkpoint: 100,
	})
}
