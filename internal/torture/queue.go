package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/plan"
)

// openBroker starts RabbitMQ with a durable queue for each process that publishes.
func (f *field) openBroker(ctx context.Context) (err error) {
	if f.broker, err = broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{}); err != nil {
		return err
	}
	return f.onBroker(func(channel *amqp.Channel) error {
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

// onBroker lends a channel that nothing breaks but the end of the broker.
func (f *field) onBroker(do func(*amqp.Channel) error) (err error) {
	connection, err := amqp.Dial(f.broker.URL(f.broker.Addr()))
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

// killBroker ends it as a crash would, and starts it again on what its disk has.
func killBroker(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	if err := f.broker.Kill(ctx); err != nil {
		return err
	}
	pause(ctx, fault.For)
	return f.broker.Start(ctx)
}

// queued takes all messages of a queue, in its order: the broker's own word on what came, and when.
func (f *field) queued(process string) (all []history.Applied, err error) {
	err = f.onBroker(func(channel *amqp.Channel) error {
		const acknowledge = true
		for {
			m, more, err := channel.Get(process, acknowledge)
			if err != nil || !more {
				return err
			}
			digest := sha256.Sum256(m.Body)
			sequence, _ := m.Headers["ordered-sequence"].(int64)
			all = append(all, history.Applied{
				N: int64(len(all) + 1), Process: process, Hash: hex.EncodeToString(digest[:]), Sequence: sequence,
				Key: fmt.Sprint(m.Headers["ordered-key"]), Position: fmt.Sprint(m.Headers["ordered-position"]),
			})
		}
	})
	return all, err
}
