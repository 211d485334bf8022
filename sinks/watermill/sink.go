package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink publishes records through a Publisher. It implements processor.Sink and is
// safe for concurrent use; calls take turns.
type Sink struct {
	publisher message.Publisher
	topicOf   func(d processor.Delivery) (string, error)
	turn      chan struct{} // holds one value while Publish has not returned
}

var _ processor.Sink = (*Sink)(nil)

// New makes a sink.
func New(c Config) (*Sink, error) {
	topicOf, err := c.topicOf()
	if err != nil {
		return nil, fmt.Errorf("configure watermill sink: %w", err)
	}
	return &Sink{publisher: c.Publisher, topicOf: topicOf, turn: make(chan struct{}, 1)}, nil
}

// Deliver publishes a record. nil has the meaning that the Publisher gives it: see the package comment. The outcome
// is unknown if ctx ends while Publish runs. Publish may then still be running when Deliver returns, and the next
// call waits for it.
func (s *Sink) Deliver(ctx context.Context, d processor.Delivery) error {
	topic, err := s.topicOf(d)
	if err == nil && topic == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return processor.Permanent(fmt.Errorf("find the topic of record %q: %w", visible.Cut(d.ID), err))
	}
	if err := s.takeTurn(ctx); err != nil {
		return processor.Unreached(fmt.Errorf("publish record %q to topic %q: nothing was sent: %w", visible.Cut(d.ID), topic, err))
	}
	if err := s.publish(ctx, topic, newMessage(ctx, d)); err != nil {
		return fmt.Errorf("publish record %q to topic %q: %w", visible.Cut(d.ID), topic, err)
	}
	return nil
}

// errBusy: the earlier message may still arrive, so nothing must be sent after it.
var errBusy = errors.New("the Publisher has not returned from an earlier call whose time was over; " +
	"it must end with the context of its message")

// takeTurn waits until Publish has returned. It hides that ctx timed out: nothing was sent, so the outcome is not
// unknown.
func (s *Sink) takeTurn(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New(context.Cause(ctx).Error())
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// outcome is how a call of Publish ended.
type outcome struct {
	err      error
	panicked any
}

// publish calls Publish. It gives the turn back when Publish returns, which may be after the end of ctx and so of
// this call.
func (s *Sink) publish(ctx context.Context, topic string, m *message.Message) error {
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			<-s.turn
			ended <- o
		}()
		o.err = s.publisher.Publish(topic, m)
	}()
	select {
	case o := <-ended:
		if o.panicked != nil {
			panic(o.panicked)
		}
		if o.err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), o.err)
		}
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("the receiver may have it: %w", context.Cause(ctx))
	}
}
