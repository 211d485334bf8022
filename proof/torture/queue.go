package main

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// queues are a RabbitMQ with a durable queue for each process that publishes there.
type queues struct{ *broker.RabbitMQ }

func (f *field) openQueues(ctx context.Context) error {
	server, err := broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{})
	if err != nil {
		return err
	}
	q := queues{server}
	f.brokers[history.Queue] = q
	return q.use(func(channel *amqp.Channel) error {
		for _, p := range processes() {
			if p.Sink != history.Queue {
				continue
			}
			if _, err := channel.QueueDeclare(p.Name, true, false, false, false, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// use lends a channel that nothing breaks but the end of the broker.
func (q queues) use(do func(*amqp.Channel) error) (err error) {
	connection, err := amqp.Dial(q.URL(q.Addr()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	return do(channel)
}

// read takes all messages out of a queue: the broker's own word on what came, and in which order.
func (q queues) read(_ context.Context, process string) (all []history.Applied, err error) {
	err = q.use(func(channel *amqp.Channel) error {
		const acknowledge = true
		for {
			m, more, err := channel.Get(process, acknowledge)
			if err != nil || !more {
				return err
			}
			sequence, _ := m.Headers["ordered-sequence"].(int64)
			all = append(all, history.Applied{
				N: int64(len(all) + 1), Process: process, Hash: digest(m.Body), Sequence: sequence,
				Key: fmt.Sprint(m.Headers["ordered-key"]), Position: fmt.Sprint(m.Headers["ordered-position"]),
			})
		}
	})
	return all, err
}
