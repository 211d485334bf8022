package kafka_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// loseAnswer hangs up at the next request with records.
func loseAnswer(cluster *kfake.Cluster) {
	cluster.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, io.EOF, true })
}

func answerOnce(cluster *kfake.Cluster, code *kerr.Error) {
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: code})
}

// The broker takes records and hangs up. The client sends them again by itself, and the broker,
// whose settings have changed since, says no to that.
func TestDeliverBatch_ANoToARecordThatWasSentAgainLeavesItOpen(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.MessageTooLarge, kerr.InvalidRecord, kerr.TopicAuthorizationFailed, kerr.InvalidTimestamp} {
		for name, records := range map[string]int{"one": 1, "several": 4} {
			t.Run(code.Message+" "+name, func(t *testing.T) {
				t.Parallel()
				cluster := fake(t)
				s := sinkOf(t, cluster, nil)
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
				refused := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: code, Count: -1})
				loseAnswer(cluster)
				n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, records))
				require.Zero(t, n)
				require.ErrorIs(t, err, code)
				require.ErrorContains(t, err, "the broker may have the record: an answer was lost, and after that it said")
				require.Equal(t, "unknown", sinktest.Class(err), err)
				n, err = sinktest.Deliver(t, s, sinktest.Deliveries(2, records))
				require.Zero(t, n)
				require.False(t, outcome.IsUnknown(err), "asked once: %v", err)
				refused.Remove()
			})
		}
	}
}

// The leader took the records, and then stepped down or lost its disk; the next one lacks replicas. Nobody knows whether they
// are there, and it is no fault of theirs.
func TestDeliverBatch_AWordThatMayPassAfterTheBrokerTookTheRecordLeavesItOpen(t *testing.T) {
	t.Parallel()
	for _, first := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.KafkaStorageError} {
		t.Run(first.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			answerOnce(cluster, first)
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: kerr.NotEnoughReplicas, Count: -1})
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
			require.Zero(t, n)
			require.ErrorIs(t, err, kerr.NotEnoughReplicas)
			requireOutage(t, err)
		})
	}
}

// An answer was lost, and then the broker takes nothing.
func TestDeliverBatch_AWordThatMayPassAfterALostAnswerIsNoAttempt(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: kerr.NotEnoughReplicas, Count: -1})
	loseAnswer(cluster)
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 4))
	require.Zero(t, n)
	require.ErrorIs(t, err, kerr.NotEnoughReplicas)
	requireOutage(t, err)
}

// requireOutage is a failure of unknown outcome that is no attempt of the record.
func requireOutage(t testing.TB, err error) {
	t.Helper()
	require.ErrorContains(t, err, "the broker may have the record")
	require.True(t, outcome.IsOutage(err), err)
	require.Equal(t, "outage", sinktest.Class(err), err)
}

// The broker took the records and did not hear of the replicas in time: it may have them.
func TestDeliverBatch_ANoThatFollowsATimeoutOfTheBrokerLeavesItOpen(t *testing.T) {
	t.Parallel()
	for _, records := range []int{1, 4} {
		t.Run(fmt.Sprint(records), func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			answerOnce(cluster, kerr.RequestTimedOut)
			answerOnce(cluster, kerr.MessageTooLarge)
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, records))
			require.Zero(t, n)
			require.ErrorIs(t, err, kerr.MessageTooLarge)
			require.True(t, outcome.IsUnknown(err), err)
		})
	}
}

// A request carries the batches of several partitions, and the one that is sent again may go alone.
func TestDeliverBatch_ANoThatFollowsATimeoutIsOpenBesideOtherPartitions(t *testing.T) {
	t.Parallel()
	for _, first := range []*kerr.Error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition} {
		for _, final := range []*kerr.Error{kerr.MessageTooLarge, kerr.TopicAuthorizationFailed, kerr.InvalidTimestamp} {
			t.Run(first.Message+" "+final.Message, func(t *testing.T) {
				t.Parallel()
				cluster := clusterOf(t, kfake.SeedTopics(1, "t.a", "t.b"))
				s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = "t.{{.Type}}" })
				sinktest.Delivered(t, s, typed(1, "a", "b"))
				for _, code := range []*kerr.Error{first, final} {
					cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: code})
				}
				n, err := sinktest.Deliver(t, s, typed(3, "a", "b"))
				require.Zero(t, n)
				require.ErrorIs(t, err, final)
				require.ErrorContains(t, err, "the broker may have the record: it was sent again")
				require.Equal(t, "unknown", sinktest.Class(err), err)
			})
		}
	}
}

// After the first word the client never gives up, and the broker's later ones are lost in the end of the time.
func TestDeliverBatch_TooFewReplicasBehindAnAppendIsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, first := range []*kerr.Error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend} {
		for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional} {
			t.Run(first.Message+" "+name, func(t *testing.T) {
				t.Parallel()
				cluster := fake(t)
				s := sinkOf(t, cluster, change)
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
				answerOnce(cluster, first)
				cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: kerr.NotEnoughReplicas, Count: -1})
				_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
				require.ErrorContains(t, err, "see whether the partition has its in-sync replicas")
				require.True(t, processor.IsUnreached(err), err)
				require.Equal(t, change == nil, outcome.IsOutage(err), err)
				require.Equal(t, change == nil, outcome.IsUnknown(err), err)
			})
		}
	}
}

// A commit whose answer was lost went over a connection that had worked.
func TestDeliverBatch_ALostCommitIsNotBlamedOnTheLogin(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	cluster.ControlKey(kmsg.EndTxn.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, io.EOF, true
	})
	s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 20 * time.Second })
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
	require.Zero(t, n)
	require.True(t, outcome.IsUnknown(err), err)
	require.ErrorContains(t, err, "the commit may have happened: the broker closed the connection before it answered")
	require.NotContains(t, err.Error(), "SASL")
	require.NotContains(t, err.Error(), "at the first word")
}
