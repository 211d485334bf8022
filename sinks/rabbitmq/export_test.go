package rabbitmq

import amqp "github.com/rabbitmq/amqp091-go"

// Met reports whether an alarm met a call during which the broker said these words, and the
// call after it.
func Met(words ...amqp.Blocking) (during, after bool) {
	a := alarm{over: make(chan struct{}, 1)}
	said := make(chan amqp.Blocking, len(words))
	for _, w := range words {
		said <- w
	}
	close(said)
	a.begin()
	a.watch(said)
	during = a.met()
	a.begin()
	return during, a.met()
}

// HangUp ends the connection on this side, before its readers notice.
func (s *Sink) HangUp() { s.link.cut() }
