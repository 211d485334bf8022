package rabbitmq

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Met reports whether an alarm met a call during which the broker said these words, and the
// call after it. err is that of a record which had no confirm in the first one.
func Met(words ...amqp.Blocking) (during, after bool, err error) {
	s := &Sink{link: &link{alarm: alarm{over: make(chan struct{}, 1)}}}
	a := &s.link.alarm
	said := make(chan amqp.Blocking, len(words))
	for _, w := range words {
		said <- w
	}
	close(said)
	a.begin()
	a.watch(said)
	during, err = a.met(), s.unconfirmed(sent{}, context.DeadlineExceeded)
	a.begin()
	return during, a.met(), err
}

// HangUp ends the connection on this side, before its readers notice.
func (s *Sink) HangUp() { s.link.cut() }
