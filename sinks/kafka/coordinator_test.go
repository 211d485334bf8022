package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// coordinatorSays has the cluster answer whoever looks for the coordinator of a transaction, until the returned function is called.
func coordinatorSays(cluster *kfake.Cluster, kind kmsg.Key, code *kerr.Error) (remove func()) {
	return cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kind}, Err: code, Count: -1}).Remove
}

// One broker, and Kafka's own default of three replicas for the log of transactions: that word was a time-out without a cause, and
// the advice was about addresses.
func TestDeliverBatch_ACoordinatorThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	for _, kind := range []kmsg.Key{kmsg.FindCoordinator, kmsg.InitProducerID} {
		for _, code := range []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress} {
			t.Run(kind.Name()+" "+code.Message, func(t *testing.T) {
				t.Parallel()
				cluster := fake(t)
				there := coordinatorSays(cluster, kind, code)
				s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 6 * time.Second })
				for range 2 {
					n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 3))
					require.Zero(t, n)
					require.ErrorIs(t, err, code)
					require.ErrorContains(t, err, "nothing was sent")
					require.ErrorContains(t, err, "transaction.state.log.replication.factor")
					require.NotContains(t, err.Error(), "advertised.listeners")
					require.Equal(t, "unreached", sinktest.Class(err), err)
				}
				there()
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
			})
		}
	}
}

// The same of a real broker that stands alone, with Kafka's own defaults for the log of transactions.
func TestDeliverBatch_OneBrokerWithKafkasDefaultsHasNoCoordinator(t *testing.T) {
	t.Parallel()
	one := brokertest.NewKafka(t, broker.KafkaConfig{Settings: "transaction.state.log.replication.factor=3\ntransaction.state.log.min.isr=2\n"})
	b := benchOf(t, one, 1, nil)
	s := b.sink(t, func(c *kafka.Config) { transactional(c); c.Timeout = 6 * time.Second })
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 3))
	require.ErrorIs(t, err, kerr.CoordinatorNotAvailable)
	require.ErrorContains(t, err, "transaction.state.log.replication.factor")
	require.True(t, processor.IsUnreached(err), err)
}

// What docs/sinks/kafka.md says of a transactional_id that is changed after a worker was killed before its commit.
func TestDeliverBatch_WhatAFormerTransactionalIDLeftOpenEndsWithAWorkerThatHasIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	killed, err := kgo.NewClient(kgo.SeedBrokers(b.broker.Addr()), kgo.TransactionalID(b.topic+"-former"), kgo.DefaultProduceTopic(b.topic))
	require.NoError(t, err)
	t.Cleanup(killed.Close)
	require.NoError(t, killed.BeginTransaction())
	require.NoError(t, killed.ProduceSync(t.Context(), kgo.StringRecord("never committed")).FirstErr())

	sinktest.Delivered(t, b.sink(t, transactional), sinktest.Deliveries(1, 2)) // it counts as delivered
	require.Empty(t, b.read(t), "and is behind what is open")
	former := b.sink(t, func(c *kafka.Config) { c.TransactionalID = b.topic + "-former" })
	sinktest.Delivered(t, former, sinktest.Deliveries(3, 1))
	require.Equal(t, upTo(3), sequences(b.read(t)))
}
