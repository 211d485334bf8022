package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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

// prepare makes the tables: bookings, the outbox, and the cursors.
func prepare(ctx context.Context, address string, pool *pgxpool.Pool) error {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: address}); err != nil {
		return err
	}
	box, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, box.SQL()+`
		CREATE TABLE public.booking (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, phone text NOT NULL)`)
	return err
}

// service takes a booking for the phone number in the body.
type service struct{ pool *pgxpool.Pool }

// sms is the payload of a record.
type sms struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// ServeHTTP writes the booking and its record in one transaction: either both are there, or neither.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	phone, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
	if err != nil {
		http.Error(w, "send a phone number", http.StatusBadRequest)
		return
	}
	err = pgx.BeginFunc(r.Context(), s.pool, func(tx pgx.Tx) error {
		var id int64
		if err := tx.QueryRow(r.Context(), `INSERT INTO public.booking (phone) VALUES ($1) RETURNING id`, string(phone)).Scan(&id); err != nil {
			return err
		}
		return outbox.Add(r.Context(), tx, outbox.Record{
			Type: "booking.made", AggregateType: "booking", AggregateID: fmt.Sprint(id),
			Payload: sms{To: string(phone), Text: fmt.Sprintf("Booking %d is confirmed", id)},
		})
	})
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// newDispatcher sends the records to the provider. The daemon does the same with a file:
//
//	booking_sms:
//	  source: {table: public.outbox, preset: outbox}
//	  start: beginning
//	  retry: {initial: 20ms, max: 100ms}
//	  sink:
//	    webhook: {url: …, timeout: 1s}
func newDispatcher(pool *pgxpool.Pool, providerURL string) (*processor.Process, error) {
	store, err := cursor.NewStore(pool, cursor.Config{})
	if err != nil {
		return nil, err
	}
	source, err := table.New(pool, table.Config{Table: "public.outbox", Preset: table.Outbox})
	if err != nil {
		return nil, err
	}
	sink, err := webhook.New(webhook.Config{URL: providerURL, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	return processor.New(processor.Config{
		Process: "booking_sms", Store: store, Source: source, Dispatch: processor.Each(sink), Start: processor.Beginning,
		Retry: processor.Retry{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond},
	})
}

// serve serves a handler on a free port of this machine.
func serve(handler http.Handler) (url string, closeServer func(), err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
