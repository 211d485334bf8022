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
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// event is the payload of a record.
type event struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

const (
	placed    = "order.placed"
	cancelled = "order.cancelled"
)

// prepare makes the tables of both ends. They could be in two databases.
func prepare(ctx context.Context, address string, pool *pgxpool.Pool) error {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: address}); err != nil {
		return err
	}
	out, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, out.SQL()+`
		CREATE TABLE public.orders (
			id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			customer  text NOT NULL,
			cents     bigint NOT NULL,
			cancelled boolean NOT NULL DEFAULT false)`)
	if err != nil {
		return err
	}
	return prepareLoyalty(ctx, pool)
}

// takeOrders takes n orders of five customers. Every tenth one is cancelled at once.
func takeOrders(ctx context.Context, pool *pgxpool.Pool, n int) error {
	for i := range n {
		e := event{Customer: fmt.Sprint("customer-", i%5), Cents: int64(1000 + 100*(i%37))}
		id, err := place(ctx, pool, e)
		if err != nil {
			return err
		}
		if i%10 == 9 {
			if err := cancel(ctx, pool, id, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// place writes the order and its record in one transaction: either both are there, or neither.
func place(ctx context.Context, pool *pgxpool.Pool, e event) (id int64, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "INSERT INTO public.orders (customer, cents) VALUES ($1, $2) RETURNING id", e.Customer, e.Cents).Scan(&id)
		if err != nil {
			return err
		}
		return outbox.Add(ctx, tx, outbox.Record{Type: placed, AggregateType: "order", AggregateID: fmt.Sprint(id), Payload: e})
	})
	return id, err
}

func cancel(ctx context.Context, pool *pgxpool.Pool, id int64, e event) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE public.orders SET cancelled = true WHERE id = $1", id); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, outbox.Record{Type: cancelled, AggregateType: "order", AggregateID: fmt.Sprint(id), Payload: e})
	})
}

// newDispatcher sends the records to Kafka. The message key is the record's key: the id of the aggregate, so all events
// of an order go to one partition, in their order. The daemon does the same with a file:
//
//	orders:
//	  source: {table: public.outbox, preset: outbox}
//	  start: beginning
//	  checkpoint: 100
//	  retry: {initial: 20ms, max: 100ms}
//	  sink:
//	    kafka: {brokers: […], topic: orders, window: 100, timeout: 2s}
func newDispatcher(pool *pgxpool.Pool, store *cursor.Store, brokers []string) (p *processor.Process, closeSink func(), err error) {
	source, err := newSource(pool)
	if err != nil {
		return nil, nil, err
	}
	sink, err := kafka.New(kafka.Config{Brokers: brokers, Topic: topic, Window: 100, Timeout: 2 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	p, err = processor.New(processor.Config{
		Process: process, Store: store, Source: source, Dispatch: processor.Batch(sink), Start: processor.Beginning, Checkpoint: 100,
		Retry: processor.Retry{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond},
	})
	return p, func() { _ = sink.Close() }, err
}

func newSource(pool *pgxpool.Pool) (*table.Source, error) {
	return table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox})
}
