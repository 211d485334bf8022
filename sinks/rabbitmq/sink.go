package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Sink publishes records to one exchange. It implements processor.BatchSink and
// is safe for concurrent use; calls take turns on its one connection.
type Sink struct {
	config Config
	key    *route.Template
	guard  secret.Guard

	mu   sync.Mutex
	link *link // nil: to be opened
	pace pace
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
	return &Sink{config: c, key: key, guard: newGuard(c), pace: pace{room: c.Window}}, nil
}

// String names the broker and the exchange.
func (s *Sink) String() string { return s.config.String() }

// GoString is String, so that no verb prints the password.
func (s *Sink) GoString() string { return s.String() }

// Close closes the connection. It takes at most two seconds, even if the broker is silent. Messages that an alarm
// holds up may be published later. A later delivery opens another connection.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return nil
	}
	err := s.link.close()
	s.link = nil
	return err
}

// Pending reports whether messages are on their way that an alarm of the broker holds up. A sink that replaced this
// one would send them a second time.
func (s *Sink) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link != nil && !s.link.dead() && len(s.link.window) > 0
}

// DeliverBatch publishes records in order. It returns how many of them, from the first on, the broker has confirmed
// and not returned. An error that is a time-out (outcome.IsUnknown) leaves the outcome of its record unknown. An
// error of outcome.NoTime is not a failure: the next call delivers the rest.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guard := s.guard.Of(processor.Redact(ds))
	if s.link == nil || s.link.dead() {
		l, err := s.open(ctx)
		if err != nil {
			return 0, guard.Error(s.unsent(err))
		}
		s.link = l
	}
	l := s.link
	l.alarm.begin()
	n, err := s.publishAll(ctx, ds)
	switch {
	case l.broken:
		s.drop()
	case l.alarm.met():
		l.hold()
	case err != nil && !outcome.IsAboutRecord(err) && !outcome.IsNoTime(err):
		s.drop()
	}
	return n, guard.Error(err)
}

func (s *Sink) drop() {
	if s.link != nil {
		s.link.cut()
	}
	s.link = nil
}

// sent is a publishing on its way.
type sent struct {
	key     string
	message amqp.Publishing
	confirm *amqp.DeferredConfirmation
	at      time.Time
	earlier bool // an earlier call sent it: message has the digest of its body
}

// publishAll keeps the window full and takes the confirms in order.
func (s *Sink) publishAll(ctx context.Context, ds []processor.Delivery) (acknowledged int, err error) {
	next, err := s.resume(ctx, ds)
	if err != nil {
		return 0, err
	}
	l := s.link
	var failure error // of the record that could not be published
	for acknowledged < len(ds) {
		for failure == nil && next < len(ds) && s.hasRoom() && (next == 0 || s.pace.fits(ctx)) {
			if failure = s.publish(ctx, ds[next]); failure == nil {
				next++
			}
		}
		switch {
		case len(l.window) > 0:
		case failure != nil:
			return acknowledged, failure
		default:
			return acknowledged, s.noTime()
		}
		if err := s.confirmed(ctx, ds[acknowledged]); err != nil {
			s.pace.failed(len(l.window), err)
			return acknowledged, s.settle(ctx, err)
		}
		s.pace.confirmed(l.window[0], s.config.Window)
		l.window = l.window[1:]
		acknowledged++
	}
	return acknowledged, nil
}

// settle returns why a record failed. Before that it waits for the broker's answers about all records after it.
// Otherwise a later return of one of them would be taken for the answer to its next attempt.
func (s *Sink) settle(ctx context.Context, failure error) error {
	if !outcome.IsAboutRecord(failure) {
		return failure // the link is dropped with everything on its way, or it waits for the end of an alarm
	}
	s.link.window = s.link.window[1:]
	err := s.drain(ctx)
	if err == nil || s.link.alarm.met() && !s.link.broken {
		return failure
	}
	s.drop()
	return s.besideAnOpenOne(failure)
}

// drain waits for the broker's answers about everything on its way. The answers count for nothing.
func (s *Sink) drain(ctx context.Context) error {
	l := s.link
	wait, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for len(l.window) > 0 {
		p := l.window[0]
		select {
		case <-p.confirm.Done():
			if !p.confirm.Acked() && l.dead() { // an unconfirmed message then counts as refused
				return errEnded
			}
			if _, err := l.wasReturned(p.message.MessageId); err != nil {
				return err
			}
			l.window = l.window[1:]
		case <-wait.Done():
			return context.Cause(wait)
		}
	}
	return nil
}

// hasRoom reports whether one more record may be on its way. Under an alarm the records on their way come first.
func (s *Sink) hasRoom() bool {
	n := len(s.link.window)
	return n == 0 || n < s.pace.window() && s.link.alarm.reason() == nil
}

// publish sends one record.
func (s *Sink) publish(ctx context.Context, d processor.Delivery) error {
	key, message, err := s.message(d)
	if err != nil {
		return s.refusal(d, err)
	}
	l := s.link
	if len(l.window) == 0 {
		if err := l.awaitAlarm(ctx, s.config.Timeout); err != nil {
			return s.unsent(err)
		}
	}
	if ctx.Err() != nil {
		return s.unsent(context.Cause(ctx))
	}
	write, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("not written within %v: %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	defer context.AfterFunc(write, l.cut)() // a write that the broker does not read ignores the context
	const mandatory, immediate = true, false
	l.socket.frames.sends(message.Body)
	before, began := l.socket.written.Load(), time.Now()
	confirm, err := l.channel.PublishWithDeferredConfirm(s.config.Exchange, key, mandatory, immediate, message)
	if err != nil {
		return s.unpublished(before, ended(write, err))
	}
	l.window = append(l.window, sent{key: key, message: message, confirm: confirm, at: began})
	return nil
}

// message makes the message of a record, and its routing key.
func (s *Sink) message(d processor.Delivery) (key string, message amqp.Publishing, err error) {
	if message, err = publishing(d); err != nil {
		return "", message, err
	}
	key, err = s.key.Of(d)
	switch {
	case err != nil:
		err = refused("its routing key: %w", err)
	case !isShort(key):
		err = refused("its routing key has %d bytes; AMQP takes %d, in UTF-8", len(key), shortString)
	case s.config.Exchange == "" && strings.HasPrefix(key, "amq."):
		err = refused("its routing key begins with amq., as the queues of the broker's own do, such as those of answers; " +
			"correct routing_key, or skip the record")
	}
	return key, message, err
}

// unpublished returns the error for a record that could not be written; before is how much the link had written until
// then. Under an alarm the broker reads no record, so a record that stays in the network is not an attempt.
func (s *Sink) unpublished(before int64, err error) error {
	l := s.link
	l.cut() // so that no more of it is written
	l.broken = true
	switch {
	case l.socket.written.Load() == before:
		return s.unsent(l.explained(err))
	default:
		return s.failed(l.explained(err))
	}
}

// confirmedWithin reports whether the broker has answered about a publishing, or its connection ended.
func (p sent) confirmedWithin(wait context.Context) bool {
	select {
	case <-p.confirm.Done():
		return true
	case <-wait.Done():
	}
	select {
	case <-p.confirm.Done(): // both
		return true
	default:
		return false
	}
}

// toBind returns the next step for a message that no queue is bound for.
func (s *Sink) toBind(key string) string {
	if s.config.Type == amqp.ExchangeHeaders { // it looks at no routing key
		return "bind a queue whose arguments match the record's headers, which travel as text: a number in a binding does not match"
	}
	return fmt.Sprintf("bind a queue for routing key %q, or correct routing_key%s", s.key.Shown(key), aboutTokens(key))
}

// aboutTokens explains a dot that comes from a record's value.
func aboutTokens(key string) string {
	if !strings.Contains(key, "%2E") {
		return ""
	}
	return ": a value's dot is %2E, unless the template says {{tokens …}}"
}

// confirmed waits for the broker's answer about the first record of the window.
func (s *Sink) confirmed(ctx context.Context, d processor.Delivery) error {
	p := s.link.window[0]
	wait, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("no confirm within %v: %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	if !p.confirmedWithin(wait) {
		return s.unconfirmed(p, context.Cause(wait))
	}
	switch back, err := s.link.wasReturned(p.message.MessageId); {
	case err != nil:
		return s.failed(err)
	case back != nil:
		return s.refusal(d, s.unroutable(fmt.Errorf("%w; %s", back, s.toBind(p.key))))
	}
	if p.confirm.Acked() {
		return nil
	}
	if s.link.dead() { // an unconfirmed message then counts as refused
		err := s.link.explained(ended(ctx, closedBy(<-s.link.closed)))
		switch alone := len(s.link.window) == 1; {
		case alone && isTooLarge(err):
			return s.tooLarge(err)
		case alone && (s.refusesUs(err) || code(err) == amqp.NotFound):
			return s.notTaken(err)
		default:
			return s.failed(err)
		}
	}
	return s.refusal(d, processor.Unreached(errNack)) // the queue's fault, not the record's
}
