package nats

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// stood is what the stream has acknowledged to this sink, over any connection. It is kept while other workers have the lease: if
// one of them has said the same loss, it is said again, since nobody knows that here, and silence would be worse.
type stood struct {
	// sequence is the number of the last message, 0 if there is none. The numbers of a stream only grow.
	sequence uint64
	// identity tells the message of that number from every other one.
	identity string
	// sent and heard are when that message was sent, and acknowledged. A claim has no such times.
	sent, heard time.Time
	// made is when the stream was made that has it; zero is not known.
	made time.Time
	// lost is why records are missing in the stream; nil: nothing is known of it.
	lost error
	// epoch is the one of the record at which it was found. Every decision of an operator begins a larger one, and so
	// does a new cursor of that name after `forget`.
	epoch cursor.Epoch
}

var errSetBack = outcome.Final(errors.New("the stream was set back"))

// next takes up a message that was acknowledged. A number that is not above the last one proves a loss, which is
// said until an operator has decided.
func (s *stood) next(sequence uint64, identity string, epoch cursor.Epoch, sent time.Time) error {
	if sequence <= s.sequence {
		s.lose(epoch, "%w: it acknowledged message %d, and a later one is %d. An older copy of it was put back, it was made anew, or its server lost what it had acknowledged: records are missing there. "+
			"Compare what it has with the table, and `seek` back to where they begin; `retry` goes on without them", errSetBack, s.sequence, sequence)
	}
	s.sequence, s.identity = sequence, identity
	s.sent, s.heard = sent, time.Now()
	return s.undecided(epoch)
}

// soon is how soon after one acknowledgement the next one comes, beside twice the fastest round trip, where the message
// was sent at once. No stream is taken away, put back and refilled in that time. The first of the two may have waited here while the
// process was stopped, so it counts if it came within soonHeard.
const (
	soon      = time.Millisecond
	soonHeard = 250 * time.Millisecond
)

// isFresh reports whether the stream cannot have been set back between the last message and the next one, which is acknowledged now.
func (s *stood) isFresh(now time.Time, fastest time.Duration) bool {
	return s.heard.Sub(s.sent) < soonHeard && now.Sub(s.heard) < soon+2*fastest
}

// differs reports whether a stream seems to be another one than that which acknowledged messages, by when it was made.
func (s *stood) differs(made time.Time) bool {
	return s.sequence != 0 && !s.made.IsZero() && !made.Equal(s.made)
}

// found takes up the stream that a connection has found. One that lacks the last message proves a loss.
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

// missing takes up that there is no stream. It proves a loss if one has acknowledged messages.
func (s *stood) missing(epoch cursor.Epoch) error {
	if s.sequence != 0 {
		s.lose(epoch, "%w: there is none any more: the messages that it had acknowledged and that no consumer had read are gone. Make the stream, or let declare make it at the next attempt, and "+
			"`seek` back to where receivers are, to have them sent again; `retry` goes on without them", errSetBack)
	}
	return s.undecided(epoch)
}

// lose takes up a loss, and forgets what was acknowledged: the same loss is not found twice.
func (s *stood) lose(epoch cursor.Epoch, format string, args ...any) {
	*s = stood{lost: fmt.Errorf(format, args...), epoch: epoch}
}

// undecided returns the loss that no operator has decided on.
func (s *stood) undecided(epoch cursor.Epoch) error {
	if epoch > s.epoch {
		s.lost = nil
	}
	return s.lost
}
