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
	_, err := Deliver(t, sink, Deliveries(1, 1))
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

// Repeated is all data of the record that Private returns, as a receiver may repeat it.
const Repeated = `{"card":"4111111111111111","name":"Lovelace"} customer-77 ada@example.org`

// Private returns a record whose data no error may quote.
func Private() []processor.Delivery {
	ds := Deliveries(1, 1)
	ds[0].Payload, ds[0].Key = []byte(`{"card":"4111111111111111","name":"Lovelace"}`), "customer-77"
	ds[0].Headers = map[string]string{"mail": "ada@example.org"}
	return ds
}

// RequirePrivate fails if an error has data of the record that Private returns, or lacks one of those words.
func RequirePrivate(t testing.TB, err error, words ...string) {
	t.Helper()
	require.Error(t, err)
	require.NotRegexp(t, `(?i)4111|lovelace|customer|ada|example\.org`, err.Error())
	for _, word := range words {
		require.ErrorContains(t, err, word)
	}
}
