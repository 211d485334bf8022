package sinktest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Marker is in every word that a receiver sends to a sink which does not quote it.
const Marker = "WORDS-of-the-receiver"

// Hides delivers a record to a receiver whose answers all contain Marker. The returned error must contain none of
// those words, and all of ours: what failed, and the next step.
func Hides(t testing.TB, sink processor.BatchSink, ours ...string) error {
	t.Helper()
	_, err := deliver(t, Subject{Sink: sink}, Deliveries(1, 1))
	RequireHidden(t, err, ours...)
	return err
}

// RequireHidden fails if an error quotes Marker, in any letter case, or lacks a word of ours.
func RequireHidden(t testing.TB, err error, ours ...string) {
	t.Helper()
	require.Error(t, err)
	require.NotRegexp(t, `(?i)words`, err.Error())
	for _, word := range ours {
		require.ErrorContains(t, err, word)
	}
}
