package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func transactional(c *kafka.Config) { c.TransactionalID = c.Topic }

// Kafka refuses the zombie, and that asks for no new epoch by which it would refuse
// the rightful worker in turn.
func TestDeliverBatch_AZombieIsFencedAndFencesNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	zombie, rightful := b.sink(t, transactional), b.sink(t, transactional)
	sinktest.Delivered(t, zombie, sinktest.Under(1, sinktest.Deliveries(1, 5)))
	for sequence := 6; sequence < 12; sequence += 2 {
		sinktest.Delivered(t, rightful, sinktest.Under(2, sinktest.Deliveries(sequence, 2)))
		n, err := sinktest.Deliver(t, zombie, sinktest.Under(1, sinktest.Deliveries(6, 10)))
		require.Zero(t, n)
		require.ErrorContains(t, err, "another producer has taken its transactional_id")
		require.False(t, processor.IsPermanent(err))
		require.False(t, outcome.IsUnknown(err), "the outcome is known: %v", err)
		require.Greater(t, processor.RetryAfterDelay(err), 5*time.Second)
	}
	require.Equal(t, upTo(11), sequences(b.read(t)))
}

// A worker that was taken over and has the lease again has a larger epoch.
func TestDeliverBatch_AFencedWorkerComesBackWithALargerEpoch(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	first, second := b.sink(t, transactional), b.sink(t, transactional)
	sinktest.Delivered(t, first, sinktest.Under(1, sinktest.Deliveries(1, 2)))
	sinktest.Delivered(t, second, sinktest.Under(2, sinktest.Deliveries(3, 2)))
	_, err := sinktest.Deliver(t, first, sinktest.Under(1, sinktest.Deliveries(3, 2)))
	require.Error(t, err)
	sinktest.Delivered(t, first, sinktest.Under(3, sinktest.Deliveries(5, 2)))
	require.Equal(t, upTo(6), sequences(b.read(t)))
}

// An operator's replay of a dead letter has the transactional id for a moment, and the
// worker its lease again, with a larger epoch.
func TestDeliverBatch_AReplayCostsTheWorkerNoAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	worker, operator := b.sink(t, transactional), b.sink(t, transactional)
	for epoch, s := range []*kafka.Sink{worker, operator, worker, operator, worker} {
		sinktest.Delivered(t, s, sinktest.Under(cursor.Epoch(epoch+1), sinktest.Deliveries(2*epoch+1, 2)))
	}
	require.Equal(t, upTo(10), sequences(b.read(t)))
}

func TestDeliverBatch_WhatWasNotCommittedIsNotSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t, 3, limited)
	s := b.sink(t, func(c *kafka.Config) { inBatches(c); transactional(c) })
	ds := withPayloads(sinktest.Deliveries(1, 4))
	for i := range ds {
		ds[i].Key = fmt.Sprint(i)
	}
	ds[3].Payload = incompressible()
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 3, n)
	require.True(t, processor.IsPermanent(err), err)
	require.Len(t, b.read(t), 3)
	all := b.read(t, "-X", "isolation.level=read_uncommitted")
	require.Greater(t, len(all), 3, "the broker has what was aborted")
}

// Readers see nothing behind an open transaction before it ends, by itself after
// its time-out.
func TestDeliverBatch_AFailedTransactionHoldsNoReaderUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	s := b.sink(t, func(c *kafka.Config) {
		transactional(c)
		c.Topic = `{{if eq .Type "odd"}}absent{{else}}` + b.topic + `{{end}}`
	})
	ds := sinktest.Deliveries(1, 5)
	ds[0].Type = "odd"
	n, err := sinktest.Deliver(t, s, ds)
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing is committed")
	require.False(t, processor.IsPermanent(err), err)
	sinktest.Delivered(t, b.sink(t, nil), sinktest.Deliveries(99, 1))
	require.Equal(t, "99", sequences(b.read(t)))
}
