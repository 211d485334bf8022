package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
)

// The receiver crashes once, when it has applied so many records.
const crashAt = 50

var errCrash = errors.New("the receiver crashes")

// newBox returns what knows which records were applied. Its tables are beside those of the points, so one transaction
// writes to both.
func newBox() (*inbox.Inbox, error) {
	return inbox.New(inbox.Config{Receiver: "loyalty", Schema: "loyalty"})
}

// prepareLoyalty makes the receiver's tables.
func prepareLoyalty(ctx context.Context, pool *pgxpool.Pool) error {
	box, err := newBox()
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, "CREATE SCHEMA loyalty;"+box.SQL()+`
		CREATE TABLE loyalty.account (customer text PRIMARY KEY, points bigint NOT NULL);
		CREATE TABLE loyalty.entry (
			id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			order_id   text NOT NULL,
			event      text NOT NULL,
			ordered_at timestamptz NOT NULL,
			added_at   timestamptz NOT NULL DEFAULT clock_timestamp())`)
	return err
}

// receiver adds points to the accounts.
type receiver struct {
	pool    *pgxpool.Pool
	box     *inbox.Inbox
	brokers []string
	out     io.Writer

	applied, again int
}

func newReceiver(pool *pgxpool.Pool, brokers []string, out io.Writer) (*receiver, error) {
	box, err := newBox()
	if err != nil {
		return nil, err
	}
	return &receiver{pool: pool, box: box, brokers: brokers, out: out}, nil
}

// run receives until ctx ends. After a crash it begins anew, as if a supervisor had started the program again.
func (r *receiver) run(ctx context.Context) error {
	err := r.receive(ctx)
	if errors.Is(err, errCrash) {
		fmt.Fprintf(r.out, "%v: it has added points, and Kafka does not know it\n", err)
		err = r.receive(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receive tells Kafka which records it has only after they are committed. So after a crash some come again.
func (r *receiver) receive(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumerGroup("loyalty"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return err
		}
		for _, record := range fetched.Records() {
			if err := r.apply(ctx, record); err != nil {
				return err
			}
		}
		if err := client.CommitRecords(ctx, fetched.Records()...); err != nil {
			return err
		}
	}
}

// apply adds the points of a record, unless it has before.
func (r *receiver) apply(ctx context.Context, record *kgo.Record) error {
	stream := fmt.Sprintf("%s/%d", record.Topic, record.Partition) // each partition has an order of its own
	message, err := inbox.FromHeaders(stream, func(name string) string { return header(record, name) })
	if err != nil {
		return err
	}
	var outcome inbox.Outcome
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		outcome, err = r.box.Handle(ctx, tx, message, func(ctx context.Context, tx pgx.Tx) error { return addPoints(ctx, tx, record) })
		return err
	})
	switch {
	case err != nil:
		return err
	case outcome == inbox.Duplicate:
		if r.again++; r.again == 1 {
			fmt.Fprintln(r.out, "a record comes again, and adds nothing")
		}
		return nil
	}
	if r.applied++; r.applied == crashAt {
		return errCrash
	}
	return nil
}

// addPoints gives a point for each whole euro, and takes it back if the order is cancelled.
func addPoints(ctx context.Context, tx pgx.Tx, record *kgo.Record) error {
	var e event
	if err := json.Unmarshal(record.Value, &e); err != nil {
		return err
	}
	points, kind := e.Cents/100, header(record, "ordered-type")
	if kind == cancelled {
		points = -points
	}
	at, err := time.Parse(time.RFC3339Nano, header(record, "ordered-created-at"))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO loyalty.account AS a (customer, points) VALUES ($1, $2)
		ON CONFLICT (customer) DO UPDATE SET points = a.points + excluded.points`, e.Customer, points)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO loyalty.entry (order_id, event, ordered_at) VALUES ($1, $2, $3)", string(record.Key), kind, at)
	return err
}

// header returns a header of a record. Beside those of docs/wire.md there is "event_id", the dedup key.
func header(record *kgo.Record, name string) string {
	for _, h := range record.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
