package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/route"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink publishes records to one exchange. It implements processor.BatchSink and
// is safe for concurrent use; calls take turns on its one connection.
type Sink struct {
	config Config
	key    *route.Template
	guard  secret.Guard

	mu   sync.Mutex
	link *link // nil: to be opened
	// alone is how many records go out one at a time: the broker closed the
	// connection on several, and would not say on which.
	alone int
	// hangUps is how many times in a row the broker hung up at the login.
	hangUps int
}

var _ processor.BatchSink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure rabbitmq sink: %w", err)
	}
	key, _ := route.Tokens(c.RoutingKey) // validated
	return &Sink{config: c, key: key, guard: newGuard(c)}, nil
}

// String names the broker and the exchange.
func (s *Sink) String() string { return s.config.String() }

// GoString is String, so that no verb prints the password.
func (s *Sink) GoString() string { return s.String() }

// Close closes the connection. A later delivery opens another.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return nil
	}
	err := s.link.connection.Close()
	s.link = nil
	return err
}

// DeliverBatch publishes records in order and returns how many of them, from the
// first on, the broker has confirmed and not returned. An error that is a time-out
// (outcome.IsUnknown) leaves the outcome of its record unknown.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || s.link.dead() {
		l, err := s.open(ctx)
		if err != nil {
			return 0, s.guard.Error(s.unsent(err))
		}
		s.link = l
	}
	defer context.AfterFunc(ctx, s.link.cut)() // a write that the broker does not read knows no context
	n, err := s.publishAll(ctx, ds)
	if err != nil && !outcome.IsRefusal(err) {
		s.drop()
	}
	return n, s.guard.Error(err)
}

func (s *Sink) drop() {
	if s.link != nil {
		s.link.cut()
	}
	s.link = nil
}

// sent is a publishing on its way.
type sent struct {
	id      string
	confirm *amqp.DeferredConfirmation
}

// publishAll keeps the window full and takes the confirms in order.
func (s *Sink) publishAll(ctx context.Context, ds []processor.Delivery) (acknowledged int, err error) {
	var window []sent
	var failure error // of the record that could not be published
	for next := 0; acknowledged < len(ds); {
		for failure == nil && next < len(ds) && len(window) < s.window() {
			p, err := s.publish(ctx, ds[next])
			if err != nil {
				failure = err
				break
			}
			window = append(window, p)
			next++
		}
		if len(window) == 0 {
			return acknowledged, failure
		}
		if err := s.confirmed(ctx, window, ds[acknowledged]); err != nil {
			s.alone = max(s.alone, len(window))
			return acknowledged, s.settle(ctx, window[1:], err)
		}
		window = window[1:]
		acknowledged++
		s.alone = max(0, s.alone-1)
	}
	return acknowledged, nil
}

// settle returns why a record failed, once the broker has had its word on all behind it:
// what it returns of them later would be taken for its word on their next attempts.
func (s *Sink) settle(ctx context.Context, rest []sent, failure error) error {
	if !outcome.IsRefusal(failure) {
		return failure // the link goes, and with it what is on its way
	}
	wait, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for _, p := range rest {
		select {
		case <-p.confirm.Done():
			s.link.wasReturned(p.id)
		case <-wait.Done():
			s.drop()
			return failure
		}
	}
	return failure
}

// window is how many records may be on their way.
func (s *Sink) window() int {
	if s.alone > 0 {
		return 1
	}
	return s.config.Window
}

// publish sends one record.
func (s *Sink) publish(ctx context.Context, d processor.Delivery) (sent, error) {
	message, err := publishing(d)
	if err != nil {
		return sent{}, s.refusal(d, err)
	}
	key, err := s.key.Of(d)
	if err != nil {
		return sent{}, s.refusal(d, refused("its routing key: %w", err))
	}
	if !isShort(key) {
		return sent{}, s.refusal(d, refused("its routing key has %d bytes; AMQP takes %d, in UTF-8", len(key), shortString))
	}
	if s.config.Exchange == "" && strings.HasPrefix(key, "amq.") {
		return sent{}, s.refusal(d, refused("its routing key begins with amq., as the queues of the broker's own do, such as those of answers; "+
			"correct routing_key, or skip the record"))
	}
	if err := s.link.awaitUnblocked(ctx); err != nil {
		return sent{}, s.unsent(err)
	}
	const mandatory, immediate = true, false
	s.link.socket.frames.sends(message.Body)
	before := s.link.socket.written.Load()
	confirm, err := s.link.channel.PublishWithDeferredConfirm(s.config.Exchange, key, mandatory, immediate, message)
	if err != nil {
		return sent{}, s.unpublished(before, ended(ctx, err))
	}
	return sent{message.MessageId, confirm}, nil
}

// unpublished is a failure to write a record; before is what the link had written until then.
func (s *Sink) unpublished(before int64, err error) error {
	s.link.cut() // so that no more of it is written
	if s.link.socket.written.Load() == before {
		return s.unsent(err)
	}
	return s.failed(err)
}

// aboutTokens explains a dot of a record's value.
func aboutTokens(key string) string {
	if !strings.Contains(key, "%2E") {
		return ""
	}
	return ": a value's dot is %2E, unless the template says {{tokens …}}"
}

// confirmed waits for the broker's word on the first record of the window.
func (s *Sink) confirmed(ctx context.Context, window []sent, d processor.Delivery) error {
	p := window[0]
	wait, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("no confirm within %v: %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	select {
	case <-p.confirm.Done():
	case <-wait.Done():
		return s.failed(context.Cause(wait))
	}
	if r, ok := s.link.wasReturned(p.id); ok {
		return s.refusal(d, s.unroutable(fmt.Errorf("the broker returned it: %d %w; bind a queue for routing key %q, or correct routing_key%s",
			r.ReplyCode, said(r.ReplyText), r.RoutingKey, aboutTokens(r.RoutingKey))))
	}
	if p.confirm.Acked() {
		return nil
	}
	if s.link.dead() { // then what was not confirmed counts as refused
		err := ended(ctx, closedBy(<-s.link.closed))
		if len(window) == 1 && isTooLarge(err) {
			return s.tooLarge(err)
		}
		return s.failed(err)
	}
	return s.refusal(d, processor.Unreached(errNack)) // of the queue, not of the record
}
