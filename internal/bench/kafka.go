package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
)

// kafkaWindow is how many records are on their way at a time, of both.
const kafkaWindow = batchSize

const kafkaTopic = "bench"

// measureKafka holds batches into a topic of one partition against the client
// alone, which has as many records on their way, in order and with the same acks.
func measureKafka(ctx context.Context, b *bench) (rows []row, err error) {
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
	if err := makeTopic(ctx, client); err != nil {
		return nil, err
	}
	sink, err := kafka.New(kafka.Config{Brokers: []string{k.Addr()}, Topic: kafkaTopic, Window: kafkaWindow})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	r, err := b.fight(ctx, duel{
		name:   "kafka",
		what:   fmt.Sprintf("kafka, window and checkpoint %d : the client alone, as many records awaited", kafkaWindow),
		target: 0.5, window: kafkaWindow, sink: sink,
		publish: func(ctx context.Context, n int) error { return publishKafka(ctx, client, n) },
	})
	return []row{r}, err
}

func makeTopic(ctx context.Context, client *kgo.Client) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = kafkaTopic, 1, 1
	request.Topics = append(request.Topics, topic)
	_, err := request.RequestWith(ctx, client)
	return err
}

// publishKafka sends n records and awaits the answers to as many as are on their
// way before it goes on.
func publishKafka(ctx context.Context, client *kgo.Client, n int) error {
	window := make([]*kgo.Record, 0, kafkaWindow)
	for i := range n {
		window = append(window, &kgo.Record{Value: []byte(payload(i))})
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
