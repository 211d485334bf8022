package main

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
)

// rabbitWindow is how many publishings are on their way at a time, of both.
const rabbitWindow = 100

const rabbitQueue = "bench"

// measureRabbitMQ holds pipelined publisher confirms into a durable queue against
// the client alone.
func measureRabbitMQ(ctx context.Context, b *bench) (rows []row, err error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	rabbit, err := broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{})
	if err != nil {
		if b.absent(err) {
			err = nil
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, rabbit.Close(context.WithoutCancel(ctx))) }()
	url := rabbit.URL(rabbit.Addr())
	connection, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	channel, err := connection.Channel()
	if err != nil {
		return nil, err
	}
	if err := channel.Confirm(false); err != nil {
		return nil, err
	}
	// What is old goes, so that no round finds a longer queue than another.
	if _, err := channel.QueueDeclare(rabbitQueue, true, false, false, false, amqp.Table{"x-max-length": int32(manyRecords)}); err != nil {
		return nil, err
	}
	sink, err := rabbitmq.New(rabbitmq.Config{URL: url, RoutingKey: rabbitQueue, Window: rabbitWindow})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	return b.fight(ctx, duel{
		name: "rabbitmq", how: "as many confirms awaited in order",
		target: 0.7, window: rabbitWindow, reads: records.manyOf(), sink: sink,
		same:  func(ctx context.Context, n int) error { return publishRabbitMQ(ctx, channel, n, rabbitMessage) },
		plain: func(ctx context.Context, n int) error { return publishRabbitMQ(ctx, channel, n, rabbitPayload) },
	})
}

func rabbitPayload(n int) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: []byte(payload(n))}
}

func rabbitMessage(n int) amqp.Publishing {
	e, p := envelopeOf(n), rabbitPayload(n)
	p.MessageId, p.Timestamp = e.key, time.Now()
	p.Headers = amqp.Table{
		"ordered-process":   e.process,
		"ordered-sequence":  int64(n),
		"ordered-epoch":     int64(1),
		"ordered-attempt":   int32(1),
		"ordered-position":  e.position,
		"ordered-dedup-key": e.key,
	}
	return p
}

// publishRabbitMQ sends n persistent messages, and takes their confirms in order.
func publishRabbitMQ(ctx context.Context, channel *amqp.Channel, n int, message func(n int) amqp.Publishing) error {
	var window []*amqp.DeferredConfirmation
	for i := range n {
		confirm, err := channel.PublishWithDeferredConfirm("", rabbitQueue, true, false, message(i))
		if err != nil {
			return err
		}
		if window = append(window, confirm); len(window) == rabbitWindow || i == n-1 {
			if err := confirmed(ctx, window); err != nil {
				return err
			}
			window = window[:0]
		}
	}
	return nil
}

func confirmed(ctx context.Context, window []*amqp.DeferredConfirmation) error {
	for _, confirm := range window {
		acked, err := confirm.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !acked {
			return errors.New("the broker refused a message")
		}
	}
	return nil
}
