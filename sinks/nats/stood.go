package nats

import (
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// stood is the sequence of the last message that the stream has acknowledged to this sink, over any
// connection; 0 is none. Those of a stream only grow, also in a declared one that is made anew.
type stood struct {
	sequence uint64
	// lost is why records are missing in the stream; nil: nothing is known of it.
	lost error
	// epoch is the one of the record at which it was found. Every decision of an operator begins a larger one, and so
	// does a new cursor of that name after `forget`.
	epoch cursor.Epoch
}

var errSetBack = outcome.Final(errors.New("the stream was set back"))

// next takes up the sequence of a message. One that is not above the last proves a loss, which is
// said until an operator has decided.
func (s *stood) next(sequence uint64, epoch cursor.Epoch) error {
	if sequence <= s.sequence {
		s.lost, s.epoch = fmt.Errorf("%w: it acknowledged message %d, and a later one is %d. An older copy of it was put back, it was made anew, or its server lost what it had acknowledged: records are missing there. "+
			"Compare what it has with the table, and `seek` back to where they begin; `retry` goes on without them", errSetBack, s.sequence, sequence), epoch
	}
	s.sequence = sequence
	return s.undecided(epoch)
}

// undecided returns the loss that no operator has decided on.
func (s *stood) undecided(epoch cursor.Epoch) error {
	if epoch > s.epoch {
		s.lost = nil
	}
	return s.lost
}
