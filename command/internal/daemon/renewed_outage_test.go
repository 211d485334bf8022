package daemon_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Kafka said NOT_ENOUGH_REPLICAS (or was silent), so nobody knows the outcome; the secret's file changes at that moment.
func TestRenewed_WhatMayHaveArrivedInAnOutageIsAnotherAttempt(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "first-token")
	call, calls := answering(t, token, func(secret string) error {
		if secret == "second-token" {
			return nil
		}
		token.hold(t, "second-token")
		return processor.Unreached(outcome.Outage(errors.New("the broker may have the record")))
	})
	err := call()
	require.Len(t, *calls, 1, "what may have arrived is another attempt")
	require.True(t, outcome.IsOutage(err), err)
}

// The same with a delay or without time for another call: the word that it is unknown is lost.
func TestRenewed_AnOutageStaysOneWhereTheNextAttemptIsLater(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "first-token")
	call, _ := answering(t, token, func(string) error {
		token.hold(t, "second-token")
		return processor.RetryAfter(processor.Unreached(outcome.Outage(errors.New("the broker may have the record"))), time.Second)
	})
	err := call()
	require.True(t, outcome.IsOutage(err), err)
}
