package rabbitmq_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestDeliverBatch_WhatWasNotWrittenIsNotSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.Away()
	s.HangUp()
	n, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(2, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing was sent")
	require.Equal(t, "unreached", sinktest.Class(err), err)
}

// Of a record that is too large the broker closes the channel: that is its word, and no
// connection that was lost.
func TestDeliverBatch_ARefusalThatClosesTheChannelIsNotUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t, amqp.Table{})
	s := b.sink(t, func(c *rabbitmq.Config) { c.Window = 1 })
	ds := sinktest.Deliveries(1, 1)
	ds[0].Payload = make([]byte, 1_000_001) // max_message_size of the tests' brokers
	n, err := s.DeliverBatch(t.Context(), ds)
	require.Zero(t, n)
	require.True(t, processor.IsPermanent(err), err)
	require.False(t, outcome.IsUnknown(err), err)
}

// The queue has all of a window, and the confirms of none arrive.
func TestDeliverBatch_ALostConnectionIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *rabbitmq.Config) { c.Window = 4 })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	b.link.Hold(link.Server, sinktest.Payload)
	var n int
	ended := make(chan error, 1)
	go func() {
		var err error
		n, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(2, 4))
		ended <- err
	}()
	require.Eventually(t, func() bool { return len(b.read(t)) == 5 }, time.Minute, 10*time.Millisecond)
	b.link.Away()
	err := waittest.Receive(t, ended, "the delivery ends")
	require.Zero(t, n)
	require.ErrorContains(t, err, "the broker may have the record")
	require.True(t, outcome.IsUnknown(err), err)
}

// The broker takes the connection, and is silent until it ends it after twice the patience.
func TestConnect_EndsWithItsContextAndWithTimeout(t *testing.T) {
	t.Parallel()
	const patience = 8 * time.Second
	for name, timeout := range map[string]time.Duration{"context": time.Hour, "timeout": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			address := tcptest.Serve(t, func(conn net.Conn) {
				if name == "context" {
					cancel()
				}
				_ = conn.SetReadDeadline(time.Now().Add(2 * patience))
				_, _ = io.Copy(io.Discard, conn)
			})
			s, err := rabbitmq.New(rabbitmq.Config{URL: "amqp://u:p@" + address + "/", RoutingKey: "q", Timeout: timeout})
			require.NoError(t, err)
			began := time.Now()
			n, err := s.DeliverBatch(ctx, sinktest.Deliveries(1, 1))
			require.Zero(t, n)
			require.ErrorContains(t, err, "nothing was sent: "+map[string]string{
				"context": "context canceled",
				"timeout": "the connection took longer than timeout (100ms), and the broker has not answered; see whether RabbitMQ answers at the address in url, or raise timeout",
			}[name])
			require.False(t, outcome.IsUnknown(err), err)
			require.Less(t, time.Since(began), patience)
		})
	}
}

// A login takes several round trips, so over a wide link a small time-out ends each attempt: that is no fault of the record, nor of
// the broker, and only the one who chose it can fix it.
func TestDeliverBatch_ATimeoutShorterThanTheLoginIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var wide atomic.Bool
	var answers atomic.Int32
	wide.Store(true)
	b.link.OnData(func(fromServer bool, _ []byte) {
		if fromServer && wide.Load() && answers.Add(1) > 1 {
			time.Sleep(2 * time.Second)
		}
	})
	short := b.sink(t, func(c *rabbitmq.Config) { c.Timeout = 2 * time.Second })
	n, err := short.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing was sent: the connection took longer than timeout (2s), and the broker answers; raise timeout")
	require.Equal(t, "unreached", sinktest.Class(err), err)
	wide.Store(false)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
}
