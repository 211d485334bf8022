package nats

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// stood is the sequence of the last message that a stream has acknowledged to this sink; the zero
// value is none. A stream that was made anew is another one.
type stood struct {
	created  time.Time
	sequence uint64
}

var errSetBack = outcome.Final(errors.New("the stream was set back"))

// goesOn holds the claim that a link has written, if it has, against it. It is proof of a loss if
// that is no later in the same stream, and is said once.
func (s *stood) goesOn(l *link) error {
	if l.claim.sequence == 0 {
		return nil
	}
	before := *s
	*s = stood{l.stream.CachedInfo().Created, l.claim.sequence}
	if !before.created.Equal(s.created) || before.sequence < s.sequence {
		return nil
	}
	return fmt.Errorf("%w: it acknowledged message %d, and the next one is %d. An older copy of its files was put back, or its server lost what it had acknowledged: records are missing there. "+
		"Compare what it has with the table, and `seek` back to where they begin; `retry` goes on without them", errSetBack, before.sequence, s.sequence)
}
