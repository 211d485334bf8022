package nats

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// stood is the last acknowledgement of the stream to this sink, over any connection. The sink keeps it while other
// workers have the lease. If one of them has reported the same loss, this sink reports it again: it cannot know about
// that report, and silence would be worse.
type stood struct {
	// sequence is the number of the last message, 0 if there is none. The numbers of a stream only grow.
	sequence uint64
	// identity distinguishes the message with that number from every other one.
	identity string
	// sent and heard are when that message was sent, and acknowledged. A claim has no such times.
	sent, heard time.Time
	// made is when the stream with that message was made; zero is not known.
	made time.Time
	// lost is why records are missing in the stream; nil: no loss is known.
	lost error
	// epoch is the epoch of the record at which the loss was found. Every decision of an operator begins a larger one,
	// and so does a new cursor of that name after `forget`.
	epoch cursor.Epoch
}

var errSetBack = outcome.ReportedOnce(errors.New("the stream was set back"))

// next notes a message that was acknowledged. A number that is not above the last one proves a loss. The sink reports
// that until an operator has decided.
func (s *stood) next(sequence uint64, identity string, epoch cursor.Epoch, sent time.Time) error {
	if sequence <= s.sequence {
		s.lose(epoch, "%w: it acknowledged message %d, and a later one is %d. An older copy of it was put back, it was made anew, or its server lost what it had acknowledged: records are missing there. "+
			"Compare what it has with the table, and `seek` back to where they begin; `retry` goes on without them", errSetBack, s.sequence, sequence)
	}
	s.sequence, s.identity = sequence, identity
	s.sent, s.heard = sent, time.Now()
	return s.undecided(epoch)
}

// soon bounds the time from one acknowledgement to the next, where the message was sent at once. It is added to twice
// the fastest round trip. In that time no one can take a stream away, put it back and refill it. The first of the two
// acknowledgements may have waited here while the process was stopped, so it counts only if it came within soonHeard.
const (
	soon      = time.Millisecond
	soonHeard = 250 * time.Millisecond
)

// isFresh reports that the stream cannot have been set back between the last message and the next one, which is
// acknowledged now.
func (s *stood) isFresh(now time.Time, fastest time.Duration) bool {
	return s.heard.Sub(s.sent) < soonHeard && now.Sub(s.heard) < soon+2*fastest
}

// differs reports whether a stream seems to be another one than the stream that acknowledged messages, by the time
// when it was made.
func (s *stood) differs(made time.Time) bool {
	return s.sequence != 0 && !s.made.IsZero() && !made.Equal(s.made)
}

// found notes the stream that a connection has found. A stream that lacks the last message proves a loss.
func (s *stood) found(made time.Time, lacks bool, epoch cursor.Epoch) error {
	switch {
	case lacks && !s.differs(made):
		s.lose(epoch, "%w: it acknowledged message %d, and has another one there. An older copy of it was put back, or its server lost what it had acknowledged, and others have published since: records are missing there. "+
			"Compare what it has with the table, and `seek` back to where they begin; `retry` goes on without them", errSetBack, s.sequence)
	case lacks:
		s.lose(epoch, "%w: it was deleted and made anew at %s: the messages that it had acknowledged and that no consumer had read are gone. "+
			"`seek` back to where receivers are, to have them sent again; `retry` goes on without them", errSetBack, made.UTC().Format(time.RFC3339))
	}
	s.made = made
	return s.undecided(epoch)
}

// missing notes that there is no stream. That proves a loss if a stream has acknowledged messages.
func (s *stood) missing(epoch cursor.Epoch) error {
	if s.sequence != 0 {
		s.lose(epoch, "%w: there is none any more: the messages that it had acknowledged and that no consumer had read are gone. Make the stream, or let declare make it at the next attempt, and "+
			"`seek` back to where receivers are, to have them sent again; `retry` goes on without them", errSetBack)
	}
	return s.undecided(epoch)
}

// lose records a loss, and forgets the acknowledgements: the same loss is not found twice.
func (s *stood) lose(epoch cursor.Epoch, format string, args ...any) {
	*s = stood{lost: fmt.Errorf(format, args...), epoch: epoch}
}

// undecided returns the loss that no operator has decided on yet.
func (s *stood) undecided(epoch cursor.Epoch) error {
	if epoch > s.epoch {
		s.lost = nil
	}
	return s.lost
}
