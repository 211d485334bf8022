package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	process  = "products"
	exchange = "corewrite.fanout"
)

// product is the payload of a record.
type product struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// prepare makes the tables of all ends. They could be in three databases.
func prepare(ctx context.Context, address string, pool *pgxpool.Pool) error {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: address}); err != nil {
		return err
	}
	out, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, out.SQL()+`
		CREATE TABLE public.product (id text PRIMARY KEY, title text NOT NULL);
		CREATE SCHEMA search;
		CREATE TABLE search.product (id text PRIMARY KEY, title text NOT NULL, writes bigint NOT NULL);
		CREATE SCHEMA cache`)
	return err
}

// post writes the product and its record in one transaction: either both are there, or neither.
func post(ctx context.Context, pool *pgxpool.Pool, p product) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO public.product (id, title) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET title = excluded.title`, p.ID, p.Title)
		if err != nil {
			return err
		}
		return outbox.Add(ctx, tx, outbox.Record{Type: "prd.post", AggregateType: "product", AggregateID: p.ID, Payload: p})
	})
}

// newDispatcher sends the records to the exchange. The routing key is the record's type. The daemon does the same with a
// file:
//
//	products:
//	  source: {table: public.outbox, preset: outbox}
//	  start: beginning
//	  checkpoint: 50
//	  sink:
//	    rabbitmq: {url: …, exchange: corewrite.fanout, type: fanout, routing_key: "{{tokens .Type}}", window: 50}
func newDispatcher(pool *pgxpool.Pool, store *cursor.Store, broker string) (p *processor.Process, closeSink func(), err error) {
	source, err := table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox})
	if err != nil {
		return nil, nil, err
	}
	sink, err := rabbitmq.New(rabbitmq.Config{URL: broker, Exchange: exchange, Type: "fanout", RoutingKey: "{{tokens .Type}}", Window: 50})
	if err != nil {
		return nil, nil, err
	}
	p, err = processor.New(processor.Config{
		Process: process, Store: store, Source: source, Dispatch: processor.Batch(sink), Start: processor.Beginning, Checkpoint: 50,
	})
	return p, func() { _ = sink.Close() }, err
}
