package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
)

// kafkaWindow is how many records are on their way at a time, of both.
const kafkaWindow = batchSize

const kafkaTopic = "bench"

// measureKafka holds batches into a topic of one partition against the client
// alone, which has as many records on their way, in order and with the same acks.
func measureKafka(ctx context.Context, b *bench) (rows []row, err error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	k, err := broker.StartKafka(ctx, broker.KafkaConfig{})
	if err != nil {
		if b.absent(err) {
			err = nil
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Close(context.WithoutCancel(ctx))) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.DefaultProduceTopic(kafkaTopic))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, kafkaTopic); err != nil {
		return nil, err
	}
	sink, err := kafka.New(kafka.Config{Brokers: []string{k.Addr()}, Topic: kafkaTopic, Window: kafkaWindow})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	return b.fight(ctx, duel{
		name: "kafka", how: "as many records awaited",
		target: 0.5, window: kafkaWindow, reads: records.allOf(), sink: sink,
		same:  func(ctx context.Context, n int) error { return publishKafka(ctx, client, n, kafkaHeaders) },
		plain: func(ctx context.Context, n int) error { return publishKafka(ctx, client, n, noKafkaHeaders) },
	})
}

func noKafkaHeaders(int) []kgo.RecordHeader { return nil }

func kafkaHeaders(n int) []kgo.RecordHeader {
	e := envelopeOf(n)
	return []kgo.RecordHeader{
		{Key: "event_id", Value: []byte(e.key)},
		{Key: "content-type", Value: []byte("application/json")},
		{Key: "ordered-process", Value: []byte(e.process)},
		{Key: "ordered-sequence", Value: []byte(e.sequence)},
		{Key: "ordered-epoch", Value: []byte(e.epoch)},
		{Key: "ordered-attempt", Value: []byte(e.attempt)},
		{Key: "ordered-position", Value: []byte(e.position)},
		{Key: "ordered-created-at", Value: []byte(e.created)},
	}
}

// publishKafka sends n records and awaits the answers to as many as are on their
// way before it goes on.
func publishKafka(ctx context.Context, client *kgo.Client, n int, headers func(n int) []kgo.RecordHeader) error {
	window := make([]*kgo.Record, 0, kafkaWindow)
	for i := range n {
		window = append(window, &kgo.Record{Value: []byte(payload(i)), Headers: headers(i)})
		if len(window) < kafkaWindow && i < n-1 {
			continue
		}
		if err := client.ProduceSync(ctx, window...).FirstErr(); err != nil {
			return err
		}
		window = window[:0]
	}
	return nil
}
