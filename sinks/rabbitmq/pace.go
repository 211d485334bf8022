package rabbitmq

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// pace is how many records may be on their way, and when a call has no time for another one.
type pace struct {
	// alone is how many records go out one at a time: the broker refused one of several, and may not have said which.
	alone int
	// room grows from 1 with each confirm, up to the window, after a failure without the broker's word on a record.
	// The first record after such a failure goes out alone. So one that ends each connection is found, and others
	// use up one attempt at most. Where it is the network, windows are back after a few round trips.
	room int
	// took is how long the last confirm took.
	took time.Duration
}

// window is how many records may be on their way.
func (p *pace) window() int {
	if p.alone > 0 {
		return 1
	}
	return p.room
}

// failed takes up that the first of some records on their way failed.
func (p *pace) failed(n int, err error) {
	if outcome.IsRefusal(err) || code(err) != 0 && code(err) != amqp.ConnectionForced {
		p.alone = max(p.alone, n)
		return
	}
	p.room = 1
}

// confirmed takes up the confirm of a record. Of one that an alarm held up, it says nothing about the next one's.
func (p *pace) confirmed(s sent, window int) {
	p.alone = max(0, p.alone-1)
	p.room = min(p.room+1, window)
	if !s.earlier {
		p.took = time.Since(s.at)
	}
}

// fits reports whether a call has time for another confirm. A record that is sent without it would come again, with an
// outcome that is unknown until then.
func (p *pace) fits(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return !bounded || time.Until(end) > 2*p.took
}
