package kafka_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// plainAndTransactional are the two ways to send a window.
var plainAndTransactional = map[string]func(*kafka.Config){"plain": func(*kafka.Config) {}, "with transactions": transactional}

// The client has two batches of a partition then. The first one goes again after a passing word or a lost connection, and the second
// is not in its way.
func TestDeliverBatch_AWindowInTwoPartsIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		for word, fail := range map[string]func(*kfake.Cluster){
			"no leader":         func(c *kfake.Cluster) { answerOnce(c, kerr.NotLeaderForPartition) },
			"too few replicas":  func(c *kfake.Cluster) { answerOnce(c, kerr.NotEnoughReplicasAfterAppend) },
			"a lost connection": loseAnswer,
		} {
			t.Run(name+" "+word, func(t *testing.T) {
				t.Parallel()
				cluster := fake(t)
				s := sinkOf(t, cluster, func(c *kafka.Config) { change(c); c.Timeout = 20 * time.Second })
				s.SendPart(3)
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
				fail(cluster)
				began := time.Now()
				sinktest.Delivered(t, s, sinktest.Deliveries(3, 8))
				require.Less(t, time.Since(began), soon)
				require.Equal(t, map[string][]int{"t0": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, readFake(t, cluster, "t"))
			})
		}
	}
}

// One partition refuses its first batch. Of the others both are written and answered, so the window ends, and what was refused is sent by halves.
func TestDeliverBatch_ARefusalInAWindowInTwoPartsEndsTheWindow(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := several(t, 1)
			s := sinkOf(t, cluster, func(c *kafka.Config) {
				change(c)
				c.Topic, c.Window, c.Timeout = "t.{{.Type}}", 30, 20*time.Second
			})
			s.Limit(kversion.V3_9_0()) // the fake broker does not always know the epoch that it gave to a transaction
			s.SendPart(9)
			sinktest.Delivered(t, s, typed(1, "a", "b", "c"))
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: kerr.MessageTooLarge})
			began := time.Now()
			ds := turns(4, 30, "a", "b", "c")
			n, err := sinktest.Deliver(t, s, ds)
			open := err != nil
			if open { // the window ended before all of it was answered
				require.ErrorContains(t, err, "the broker may have")
				m, err := sinktest.Deliver(t, s, ds[n:])
				require.NoError(t, err)
				n += m
			}
			require.Equal(t, 30, n)
			for partition, all := range readFake(t, cluster, "t.a", "t.b", "t.c") {
				if open {
					all = firsts(all)
				}
				require.Len(t, all, 11, partition)
				require.True(t, slices.IsSorted(all), "%s: %v", partition, all)
			}
			require.Less(t, time.Since(began), soon)
		})
	}
}

// firsts leaves out what came before.
func firsts(all []int) (once []int) {
	for _, n := range all {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once
}

// unknownProducer answers the first batch with that number as a broker does that retention has made forget the producer.
func unknownProducer(t *testing.T, cluster *kfake.Cluster, sequence int32) {
	done := false
	cluster.ControlKey(kmsg.Produce.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request := kreq.(*kmsg.ProduceRequest)
		if done || batches(t, request)[0].FirstSequence != sequence {
			return nil, nil, false
		}
		done = true
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		topic, partition := kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
		topic.Topic, topic.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		partition.ErrorCode, partition.BaseOffset, partition.LogStartOffset = kerr.UnknownProducerID.Code, -1, 1_000_000
		topic.Partitions = append(topic.Partitions, partition)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
}

// The client takes a new epoch, and its batch goes again under that.
func TestDeliverBatch_AProducerThatRetentionMadeForgottenGoesOn(t *testing.T) {
	t.Parallel()
	for _, part := range []int64{2, 100} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 20 * time.Second })
			s.SendPart(part)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			unknownProducer(t, cluster, 2)
			began := time.Now()
			sinktest.Delivered(t, s, sinktest.Deliveries(3, 5))
			require.Less(t, time.Since(began), soon)
			require.Equal(t, map[string][]int{"t0": {1, 2, 3, 4, 5, 6, 7}}, readFake(t, cluster, "t"))
		})
	}
}

// Of a transaction the coordinator has aborted what was sent under the old epoch. The rest must not be committed without it.
func TestDeliverBatch_AProducerThatIsForgottenInATransactionBeginsAnotherOne(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 20 * time.Second })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
	unknownProducer(t, cluster, 0)
	began := time.Now()
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 5))
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing is committed: the broker has forgotten the producer")
	require.Equal(t, "unreached", sinktest.Class(err), err)
	require.Less(t, time.Since(began), soon)
	sinktest.Delivered(t, s, sinktest.Deliveries(3, 5))
}
