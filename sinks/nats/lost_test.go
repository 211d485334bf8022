package nats_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestDeliverBatch_WhatWasNotWrittenIsNotSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.Away()
	s.HangUp()
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing was sent")
	require.Equal(t, "unreached", sinktest.Class(err), err)
}

// The stream has all of a window, and the acknowledgements of none arrive.
func TestDeliverBatch_ALostConnectionIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, window(4))
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.Hold(link.Server, sinktest.Payload)
	var n int
	ended := make(chan error, 1)
	go func() {
		var err error
		n, err = sinktest.Deliver(t, s, sinktest.Deliveries(2, 4))
		ended <- err
	}()
	require.Eventually(t, func() bool { return len(b.read(t)) == 5 }, time.Minute, 10*time.Millisecond)
	b.link.Away()
	err := waittest.Receive(t, ended, "the delivery ends")
	require.Zero(t, n)
	require.ErrorContains(t, err, "the server may have the record")
	require.True(t, outcome.IsUnknown(err), err)
}
