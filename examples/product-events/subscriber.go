package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
)

// Each subscriber crashes once, when it has applied so many messages.
const crashAt = 50

var (
	errCrash  = errors.New("crashes")
	errClosed = errors.New("the broker closed the channel")
)

// effect is what a subscriber does with a product, in the transaction that also notes the message.
type effect func(ctx context.Context, tx pgx.Tx, p product) error

// subscriber applies the messages of a queue of its own. Its inbox is in the schema of its name.
type subscriber struct {
	name, broker string
	pool         *pgxpool.Pool
	box          *inbox.Inbox
	out          io.Writer
	effect       effect

	applied, again int
}

func newSubscriber(name string, pool *pgxpool.Pool, broker string, out io.Writer, effect effect) (*subscriber, error) {
	box, err := inbox.New(inbox.Config{Receiver: name, Schema: name})
	return &subscriber{name: name, broker: broker, pool: pool, box: box, out: out, effect: effect}, err
}

func (s *subscriber) queue() string { return "product-events." + s.name }

// subscribe makes the tables of the inbox, and the queue, without what an earlier run of this example has left there.
func (s *subscriber) subscribe(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, s.box.SQL()); err != nil {
		return err
	}
	return s.onChannel(func(c *amqp.Channel) error {
		if err := c.ExchangeDeclare(exchange, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			return err
		}
		if _, err := c.QueueDelete(s.queue(), false, false, false); err != nil {
			return err
		}
		if _, err := c.QueueDeclare(s.queue(), true, false, false, false, nil); err != nil {
			return err
		}
		return c.QueueBind(s.queue(), "", exchange, false, nil)
	})
}

// unsubscribe removes the queue, since this is an example.
func (s *subscriber) unsubscribe() {
	_ = s.onChannel(func(c *amqp.Channel) error {
		_, err := c.QueueDelete(s.queue(), false, false, false)
		return err
	})
}

// onChannel calls f with a channel, and closes its connection.
func (s *subscriber) onChannel(f func(*amqp.Channel) error) error {
	connection, err := amqp.Dial(s.broker)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	return f(channel)
}

// run receives until ctx ends. After a crash it begins anew, as if a supervisor had started the program again.
func (s *subscriber) run(ctx context.Context) error {
	receive := func(c *amqp.Channel) error { return s.receive(ctx, c) }
	err := s.onChannel(receive)
	if errors.Is(err, errCrash) {
		fmt.Fprintf(s.out, "%s crashes: it has applied a message, and the broker does not know it\n", s.name)
		err = s.onChannel(receive)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// receive has one message on its way at a time, so they come in their order. It acknowledges each after the COMMIT.
func (s *subscriber) receive(ctx context.Context, channel *amqp.Channel) error {
	if err := channel.Qos(1, 0, false); err != nil {
		return err
	}
	messages, err := channel.ConsumeWithContext(ctx, s.queue(), "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for m := range messages {
		if err := s.apply(ctx, m); err != nil {
			return err
		}
		if err := m.Ack(false); err != nil {
			return err
		}
	}
	return errClosed
}

// apply applies a message, unless it has before.
func (s *subscriber) apply(ctx context.Context, m amqp.Delivery) error {
	message, err := inbox.FromHeaders("", func(name string) string { return header(m, name) })
	if err != nil {
		return err
	}
	var p product
	if err := json.Unmarshal(m.Body, &p); err != nil {
		return err
	}
	var outcome inbox.Outcome
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		outcome, err = s.box.Handle(ctx, tx, message, func(ctx context.Context, tx pgx.Tx) error { return s.effect(ctx, tx, p) })
		return err
	})
	switch {
	case err != nil:
		return err
	case outcome == inbox.Duplicate:
		if s.again++; s.again == 1 {
			fmt.Fprintf(s.out, "%s: a message comes again, and changes nothing\n", s.name)
		}
		return nil
	}
	if s.applied++; s.applied == crashAt {
		return errCrash
	}
	return nil
}

// header returns a header as text. Some are integers in AMQP.
func header(m amqp.Delivery, name string) string {
	if value, ok := m.Headers[name]; ok {
		return fmt.Sprint(value)
	}
	return ""
}
