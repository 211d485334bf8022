package rabbitmq

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// alarm is the state of the broker's memory and disk. While either is short, the broker reads nothing more from a
// connection that publishes. When it reads again, it publishes the messages that it finds there, even if the sender
// has hung up meanwhile. So the sink keeps the connection, and does not send them a second time.
type alarm struct {
	blocked atomic.Pointer[string] // the broker's reason; nil: it reads
	over    chan struct{}          // signals that the broker reads again
	changes atomic.Int64
	before  int64 // changes when the call began
}

// watch follows the broker's notices. It ends with the connection.
func (a *alarm) watch(changes <-chan amqp.Blocking) {
	for change := range changes {
		a.changes.Add(1)
		if change.Active {
			a.blocked.Store(&change.Reason)
			continue
		}
		a.blocked.Store(nil)
		select {
		case a.over <- struct{}{}:
		default:
		}
	}
}

// begin notes the beginning of a call.
func (a *alarm) begin() { a.before = a.changes.Load() }

// met reports whether there was an alarm during the call.
func (a *alarm) met() bool { return a.blocked.Load() != nil || a.changes.Load() != a.before }

// reason returns the alarm as an error, or nil.
func (a *alarm) reason() error {
	reason := a.blocked.Load()
	if reason == nil {
		return nil
	}
	return &blocked{*reason}
}

// explained adds the alarm, if there is one, to an error.
func (l *link) explained(err error) error {
	if reason := l.alarm.reason(); reason != nil {
		return fmt.Errorf("%w: %w", err, reason)
	}
	return err
}

// awaitAlarm waits for the end of an alarm.
func (l *link) awaitAlarm(ctx context.Context, patience time.Duration) error {
	if l.alarm.reason() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		reason := l.alarm.reason()
		if reason == nil {
			return nil
		}
		select {
		case <-l.alarm.over:
		case err := <-l.closed:
			return closedBy(err)
		case <-ctx.Done():
			return reason
		}
	}
}

// hold keeps the messages on their way for the next call. Their bodies belong to this one.
func (l *link) hold() {
	for i, p := range l.window {
		if !p.earlier {
			l.window[i].message.Body, l.window[i].earlier = digest(p.message.Body), true
		}
	}
}

func digest(body []byte) []byte {
	sum := sha256.Sum256(body)
	return sum[:]
}

// resume returns how many of the records are on their way already, since an alarm held them up in an earlier call. If
// other messages are on their way, it waits for them before any of the records is sent.
func (s *Sink) resume(ctx context.Context, ds []processor.Delivery) (int, error) {
	window := s.link.window
	n := min(len(window), len(ds))
	for i := range n {
		if !s.isOf(window[i], ds[i]) {
			return 0, s.awaitOthers(ctx)
		}
	}
	return n, nil
}

// isOf reports whether a publishing belongs to the record. Only the number of the attempt may differ.
func (s *Sink) isOf(p sent, d processor.Delivery) bool {
	key, message, err := s.message(d)
	if err != nil || key != p.key {
		return false
	}
	message.Headers[wire.HeaderAttempt], message.Body = p.message.Headers[wire.HeaderAttempt], digest(message.Body)
	return reflect.DeepEqual(message, p.message)
}

// awaitOthers waits for messages on their way that do not belong to the records to be sent.
func (s *Sink) awaitOthers(ctx context.Context) error {
	err := s.drain(ctx)
	if err == nil {
		return nil
	}
	if reason := s.link.alarm.reason(); reason != nil {
		err = reason
	}
	return s.unsent(err)
}
