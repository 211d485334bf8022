package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// sharedQueue is one exchange of a RabbitMQ that two processes publish to, and the one queue behind it.
type sharedQueue struct{ queues }

func openCellQueue(ctx context.Context, _ history.Clock) (cellReceiver, error) {
	server, err := broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{})
	if err != nil {
		return nil, err
	}
	q := sharedQueue{queues{server}}
	err = q.use(func(channel *amqp.Channel) error {
		return errors.Join(channel.ExchangeDeclare(sharedName, amqp.ExchangeFanout, true, false, false, false, nil), q.declare(channel))
	})
	if err != nil {
		return nil, errors.Join(err, q.close(ctx))
	}
	return q, nil
}

func (q sharedQueue) declare(channel *amqp.Channel) error {
	if _, err := channel.QueueDeclare(sharedName, true, false, false, false, nil); err != nil {
		return err
	}
	return channel.QueueBind(sharedName, "", sharedName, false, nil)
}

func (q sharedQueue) name() string { return "RabbitMQ queue" }

func (q sharedQueue) processes() []cellProcess {
	sink := fmt.Sprintf("      rabbitmq: {url: \"amqp://%s:%s@%s/\", exchange: %s, type: fanout, window: 7, timeout: %v}",
		broker.RabbitMQUser, broker.RabbitMQPassword, q.Addr(), sharedName, webhookTimeout)
	return []cellProcess{
		{name: "cell_bare_queue_1", table: "bare", sink: sink, checkpoint: 7},
		{name: "cell_bare_queue_2", table: "bare", sink: sink, checkpoint: 7},
	}
}

// read takes all messages out of the queue, as a consumer does.
func (q sharedQueue) read(context.Context) (all []history.Receipt, err error) {
	err = q.use(func(channel *amqp.Channel) error {
		const acknowledge = true
		for {
			m, more, err := channel.Get(sharedName, acknowledge)
			if err != nil || !more {
				return err
			}
			sequence, _ := m.Headers["ordered-sequence"].(int64)
			epoch, _ := m.Headers["ordered-epoch"].(int64)
			text := func(name string) string { value, _ := m.Headers[name].(string); return value }
			all = append(all, history.Receipt{
				Process: text("ordered-process"), Receiver: q.name(), Key: text("ordered-key"), Hash: digest(m.Body),
				DedupKey: text("ordered-dedup-key"), Sequence: sequence, Epoch: epoch,
			})
		}
	})
	return all, err
}

// empty deletes the queue and makes it anew a moment later. Meanwhile what is published has no queue.
func (q sharedQueue) empty(ctx context.Context) error {
	return q.use(func(channel *amqp.Channel) error {
		if _, err := channel.QueueDelete(sharedName, false, false, false); err != nil {
			return err
		}
		pause(ctx, 300*time.Millisecond)
		return q.declare(channel)
	})
}

func (q sharedQueue) close(ctx context.Context) error { return q.Close(ctx) }
