package sinktest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Lose makes a Subject.Lose over a link: the connection ends when match accepts the bytes that the sink writes.
func Lose(l *link.Link, match func(written []byte) bool) func(testing.TB) (back func()) {
	return func(t testing.TB) func() {
		found := l.Hold(link.Server, match)
		away := make(chan func(), 1)
		go func() {
			<-found
			away <- l.Away()
		}()
		return func() {
			l.Release()
			waittest.Receive(t, away, "the sink writes what is to be lost")()
		}
	}
}

// Payload matches the bytes that a sink writes as soon as they contain the payload of one of Deliveries.
func Payload(written []byte) bool { return bytes.Contains(written, []byte(`"n": 1e400`)) }

// lost: the receiver has the record, and its answer never comes.
func lost(t *testing.T, s Subject) {
	if s.Lose == nil {
		t.Log("there is no connection to be lost")
		return
	}
	eventually(t, s, Deliveries(1, 1))
	back := s.Lose(t)
	n, err := Deliver(t, s.Sink, Deliveries(2, 1))
	require.Zero(t, n)
	require.Error(t, err)
	require.True(t, s.Notes || outcome.IsUnknown(err), "the receiver may have it: %v", err)
	require.False(t, processor.IsUnreached(err) || processor.IsRefused(err) || processor.IsPermanent(err), err)
	back()
	eventually(t, s, Deliveries(2, 3))
	requireOrder(t, s.messages(Deliveries(1, 4)), s.Received(t))
	if s.Notes {
		require.Len(t, s.Received(t), 4, "its notes say what it has")
	}
}
