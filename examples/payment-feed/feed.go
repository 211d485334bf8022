package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const process = "payments"

// usage is the payload of a record.
type usage struct {
	ID       int64  `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	Currency string `json:"currency"`
}

// prepare makes the sender's tables.
func prepare(ctx context.Context, address string, pool *pgxpool.Pool) error {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: address}); err != nil {
		return err
	}
	out, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, out.SQL()+`
		CREATE TABLE public.usage (
			id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			customer text NOT NULL,
			cents    bigint NOT NULL,
			currency text NOT NULL)`)
	return err
}

// use writes usage, each with its record in one transaction: either both are there, or neither.
func use(ctx context.Context, pool *pgxpool.Pool) error {
	for i := range events {
		u := usage{Customer: fmt.Sprint("customer-", i%4), Cents: int64(100 + i), Currency: "EUR"}
		if i+1 == poison {
			u.Currency = "EURO"
		}
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, "INSERT INTO public.usage (customer, cents, currency) VALUES ($1, $2, $3) RETURNING id",
				u.Customer, u.Cents, u.Currency).Scan(&u.ID)
			if err != nil {
				return err
			}
			return outbox.Add(ctx, tx, outbox.Record{Type: "usage.recorded", AggregateType: "customer", AggregateID: u.Customer, Payload: u})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// newDispatcher sends the records to the payment processor. The daemon does the same with a file:
//
//	payments:
//	  source: {table: public.outbox, preset: outbox}
//	  start: beginning
//	  sink:
//	    webhook: {url: …, secret: "${SECRET}", timeout: 5s}
func newDispatcher(pool *pgxpool.Pool, store *cursor.Store, url, secret string) (*processor.Process, error) {
	source, err := table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox})
	if err != nil {
		return nil, err
	}
	sink, err := webhook.New(webhook.Config{URL: url, Secret: secret, Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return processor.New(processor.Config{
		Process: process, Store: store, Source: source, Dispatch: processor.Each(sink), Start: processor.Beginning,
	})
}
