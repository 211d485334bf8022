package sinktest

import (
	"bytes"
	"testing"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
)

// Lose is Subject.Lose over a link: the connection ends when match accepts what the sink
// writes.
func Lose(l *link.Link, match func(written []byte) bool) func(testing.TB) (back func()) {
	return func(testing.TB) func() {
		found := l.Hold(link.Server, match)
		away := make(chan func(), 1)
		go func() {
			<-found
			away <- l.Away()
		}()
		return func() {
			l.Release()
			(<-away)()
		}
	}
}

// Payload matches what a sink writes as soon as it has the payload of one of Deliveries.
func Payload(written []byte) bool { return bytes.Contains(written, []byte(`"n": 1e400`)) }
