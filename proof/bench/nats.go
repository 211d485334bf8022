package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
)

// natsWindow is how many messages are on their way at a time, of both.
const natsWindow = 500

const (
	natsStream  = "BENCH"
	natsSubject = "bench.records"
)

// measureNATS holds chained messages into a stream on disk against the client
// alone, which publishes asynchronously and in order as well: with an id, and with
// the sequence it expects before each message.
func measureNATS(ctx context.Context, b *bench) (rows []row, err error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	server, err := broker.StartNATS(ctx, broker.NATSConfig{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close(context.WithoutCancel(ctx))) }()
	connection, err := client.Connect(server.URL(server.Addr()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return nil, err
	}
	// The same records come in every round, so the server must not know them.
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsSubject, "ordered-fence.>"}, Duplicates: 100 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	sink, err := nats.New(nats.Config{URL: server.URL(server.Addr()), Stream: natsStream, Subject: natsSubject, Window: natsWindow})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	publisher := func(header func(n int) client.Header) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			return errors.Join(stream.Purge(ctx), publishNATS(ctx, js, stream, n, header))
		}
	}
	return b.fight(ctx, duel{
		name: "nats", how: "as many acknowledgements awaited in order",
		target: 0.7, window: natsWindow, reads: records.allOf(), sink: emptying(stream, sink),
		same: publisher(natsHeader), plain: publisher(noNATSHeader),
	})
}

// emptying empties the stream before the first record of each round, as the client
// does.
func emptying(stream jetstream.Stream, sink processor.BatchSink) processor.BatchSink {
	return processor.BatchSinkFunc(func(ctx context.Context, ds []processor.Delivery) (int, error) {
		if ds[0].Sequence == 1 {
			if err := stream.Purge(ctx); err != nil {
				return 0, err
			}
		}
		return sink.DeliverBatch(ctx, ds)
	})
}

func noNATSHeader(int) client.Header { return nil }

// natsHeader lacks what makes the order, which publishNATS adds.
func natsHeader(n int) client.Header {
	e := envelopeOf(n)
	return client.Header{
		"Content-Type":     {"application/json"},
		"ordered-process":  {e.process},
		"ordered-sequence": {e.sequence},
		"ordered-epoch":    {e.epoch},
		"ordered-attempt":  {e.attempt},
		"ordered-position": {e.position},
	}
}

// publishNATS publishes n messages, and takes their acknowledgements in order.
func publishNATS(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, n int, header func(n int) client.Header) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	var window []jetstream.PubAckFuture
	for i := range n {
		future, err := js.PublishMsgAsync(&client.Msg{Subject: natsSubject, Data: []byte(payload(i)), Header: header(i)},
			jetstream.WithMsgID(fmt.Sprintf("bench.records/%d/%d", i, last)), jetstream.WithExpectLastSequence(last+uint64(i)))
		if err != nil {
			return err
		}
		if window = append(window, future); len(window) == natsWindow || i == n-1 {
			if err := natsAcknowledged(ctx, window); err != nil {
				return err
			}
			window = window[:0]
		}
	}
	return nil
}

func natsAcknowledged(ctx context.Context, window []jetstream.PubAckFuture) error {
	for _, future := range window {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
