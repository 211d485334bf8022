package rabbitmq

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// pace controls how many records may be on their way, and when a call has no time for another one.
type pace struct {
	// alone is how many records go out one at a time: the broker refused one of several, and may not have said which.
	alone int
	// room grows from 1 with each confirm, up to the window, after a failure without the broker's word on a record.
	// The first record after such a failure goes out alone. So the sink finds a record that ends each connection, and
	// other records use up at most one attempt. If the network is the cause, windows are back after a few round trips.
	room int
	// took is how long the last confirm took.
	took time.Duration
}

// window returns how many records may be on their way.
func (p *pace) window() int {
	if p.alone > 0 {
		return 1
	}
	return p.room
}

// failed notes that the first of some records on their way failed.
func (p *pace) failed(n int, err error) {
	if outcome.IsAboutRecord(err) || code(err) != 0 && code(err) != amqp.ConnectionForced {
		p.alone = max(p.alone, n)
		return
	}
	p.room = 1
}

// confirmed notes the confirm of a record. If an alarm held it up, its time does not predict the next one's.
func (p *pace) confirmed(s sent, window int) {
	p.alone = max(0, p.alone-1)
	p.room = min(p.room+1, window)
	if !s.earlier {
		p.took = time.Since(s.at)
	}
}

// fits reports whether a call has time for another confirm. A record that is sent without that time would come again,
// and until then its outcome is unknown.
func (p *pace) fits(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return !bounded || time.Until(end) > 2*p.took
}
