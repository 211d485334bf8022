package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/run"
	"gocloud.dev/blob"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/claimcheck"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

//lint:file-ignore SA4006 The pages leave out the checks of errors.

// The code of the pages: see TestSnippets_TheGoOfEachPageIsCompiled. It is compiled, and nothing runs it.
var _ = []any{readme, readModel, producer, claims, collect, buckets, handler, askAgain}

// Booking is what the application of the README has.
type Booking struct{ ID, Phone string }

type sender struct{}

func (sender) Send(context.Context, string, string) error { return nil }

func readme(ctx context.Context, cancel func(), pool *pgxpool.Pool, sms sender) (run.Group, error) {
	store, err := cursor.NewStore(pool, cursor.Config{})
	source, err := table.New(pool, table.Config{Table: "public.bookings"})
	process, err := processor.New(processor.Config{
		Process: "booking_sms",
		Store:   store,
		Source:  source,
		Start:   processor.Beginning, // of a new cursor, if the table holds rows
		Dispatch: processor.Each(processor.JSON(
			func(ctx context.Context, b Booking, d processor.Delivery) error {
				return sms.Send(ctx, b.Phone, d.DedupKey()) // nil: the receiver has it for good
			})),
	})
	var group run.Group
	group.Add(func() error { return process.Run(ctx) }, func(error) { cancel() })
	return group, err
}

// Credited is an event of read-models.md.
type Credited struct {
	Account string
	Cents   int64
}

const creditSQL = ""

func readModel(store *cursor.Store, source *table.Source) (*processor.Process, error) {
	model, err := readmodel.New(
		readmodel.On("account.credited", func(ctx context.Context, tx pgx.Tx, c Credited, _ processor.Delivery) error {
			_, err := tx.Exec(ctx, creditSQL, c.Account, c.Cents)
			return err
		}),
		readmodel.Ignore("account.renamed"),
	)
	if err != nil {
		return nil, err
	}
	process, err := processor.New(processor.Config{
		Process: "balances@v1", Store: store, Source: source, Dispatch: processor.InTx(model), Checkpoint: 100,
	})
	return process, err
}

func insertBooking(context.Context, pgx.Tx, Booking) error { return nil }

func producer(ctx context.Context, pool *pgxpool.Pool, booking Booking) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := insertBooking(ctx, tx, booking); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, outbox.Record{
			Type: "booking.created", AggregateType: "booking", AggregateID: booking.ID, Payload: booking,
		})
	})
	return err
}

func claims() (*outbox.Outbox, error) {
	box, err := outbox.New(outbox.Config{
		Raw: true, CompressAbove: 4 << 10, ClaimAbove: 256 << 10, Claims: claim.Dir("/srv/claims"), MaxBytes: 32 << 20,
	})
	return box, err
}

func collect(ctx context.Context, pool *pgxpool.Pool, box *outbox.Outbox) (any, error) {
	removed, err := box.Collect(ctx, pool, 24*time.Hour, pgx.Identifier{"public", "dead_letter"})
	return removed, err
}

func buckets(ctx context.Context) (*outbox.Outbox, error) {
	bucket, err := blob.OpenBucket(ctx, "s3://claims?region=eu-central-1") // imports _ "gocloud.dev/blob/s3blob"
	box, err := outbox.New(outbox.Config{ClaimAbove: 256 << 10, Claims: claimcheck.New(bucket)})
	return box, err
}

func handler(pool *pgxpool.Pool) (http.Handler, error) {
	box, err := inbox.New(inbox.Config{Receiver: "billing"})
	handler, err := box.Handler(pool, inbox.HandlerConfig{Secret: os.Getenv("SECRET")},
		func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
			if r.ClaimCheck || r.ContentEncoding != "" {
				return fmt.Errorf("%w: the body is a reference or compressed", inbox.ErrPoison)
			}
			_, err := tx.Exec(ctx, "INSERT INTO payments …", r.Body)
			return err // 503; with inbox.ErrPoison 422
		})
	return handler, err
}

func askAgain(ctx context.Context, tx pgx.Tx, box *inbox.Inbox, process string, line map[string]string, effect func(context.Context, pgx.Tx) error, end inbox.Message) error {
	m, err := inbox.FromHeaders("", func(name string) string { return line[name] })
	_, err = box.Handle(ctx, tx, m, effect) // then COMMIT
	// after the last line
	next := inbox.Message{Process: process, Origin: end.Origin, Epoch: end.Epoch, Sequence: end.Sequence + 1, DedupKey: "next"}
	err = box.NoteEpoch(ctx, tx, next)
	err = box.AcceptGap(ctx, tx, process, "", end.Sequence) // then COMMIT
	return err
}
