package kafka_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The next link has a producer of its own, whose numbers follow upon nothing, and the offset of its first record is past the last one.
func TestDeliverBatch_ALossIsSaidAlsoWhereOthersHaveWrittenPastIt(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ownBench(t)
			s := b.sink(t, change)
			deliverAll(t, s, 1, 3)
			copied := b.copied(t)
			deliverAll(t, s, 4, 8)
			b.setBack(t, copied)
			b.others(t, 30)
			require.NoError(t, s.Close()) // as after a record that was sent while the broker was away
			requireLoss(t, s, 12, "and another record is there: an older copy of the broker's data was put back")
			require.NotContains(t, sequences(b.read(t)), "12")
			sinktest.Delivered(t, s, sinktest.Under(decided, sinktest.Deliveries(4, 9)))
		})
	}
}

// The coordinator has an older epoch of the producer, too, and says what it says to one that another producer has put out.
func TestDeliverBatch_ALossIsSaidAfterTheCoordinatorFencedItsProducer(t *testing.T) {
	t.Parallel()
	b := ownBench(t)
	s := b.sink(t, transactional)
	deliverAll(t, s, 1, 3)
	copied := b.copied(t)
	deliverAll(t, s, 4, 8)
	b.setBack(t, copied)
	b.others(t, 30)
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(12, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing is committed: ")
	require.ErrorContains(t, err, "or an older copy of the broker's data was put back")
	n, err = sinktest.Deliver(t, s, sinktest.Under(decided, sinktest.Deliveries(12, 1))) // and not after ten seconds
	require.Zero(t, n)
	require.ErrorContains(t, err, "has acknowledged offset")
	require.True(t, processor.IsRefused(err), err)
}

// answerLook answers a kind of request to a partition with a code, as often as it is told to; below 0: always.
func answerLook(cluster *kfake.Cluster, kind kmsg.Key, code *kerr.Error, times int32) *atomic.Int32 {
	asked := new(atomic.Int32)
	cluster.ControlKey(kind.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if n := asked.Add(1); times >= 0 && n > times {
			return nil, nil, false
		}
		switch request := request.(type) {
		case *kmsg.ListOffsetsRequest:
			response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
			response.Topics = append(response.Topics, kmsg.ListOffsetsResponseTopic{Topic: request.Topics[0].Topic})
			for _, p := range request.Topics[0].Partitions {
				response.Topics[0].Partitions = append(response.Topics[0].Partitions, kmsg.ListOffsetsResponseTopicPartition{Partition: p.Partition, ErrorCode: code.Code})
			}
			return response, nil, true
		case *kmsg.FetchRequest:
			response := request.ResponseKind().(*kmsg.FetchResponse)
			response.Topics = append(response.Topics, kmsg.FetchResponseTopic{Topic: request.Topics[0].Topic, TopicID: request.Topics[0].TopicID})
			for _, p := range request.Topics[0].Partitions {
				response.Topics[0].Partitions = append(response.Topics[0].Partitions, kmsg.FetchResponseTopicPartition{Partition: p.Partition, ErrorCode: code.Code})
			}
			return response, nil, true
		}
		return nil, nil, false
	})
	return asked
}

// Where the log ends can be asked for without the right to read, and nothing is sent behind the gap.
func TestDeliverBatch_ALogThatEndsBeforeWhatWasAcknowledgedIsSaidBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	cluster := old(t, "t")
	s := sinkOf(t, cluster, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
	require.NoError(t, s.Close())
	makeAnew(t, cluster, "t")
	answerLook(cluster, kmsg.Fetch, kerr.TopicAuthorizationFailed, -1)
	answerLook(cluster, kmsg.ListOffsets, kerr.NotLeaderForPartition, 2) // it has just started
	produced := hear(cluster, kmsg.Produce)
	requireLoss(t, s, 4, "has acknowledged offset 2, and its log ends before offset 0")
	require.Empty(t, produced.all())
}

// Kafka answers with whole batches, so the look has to take one of ours, and one of others that is not larger.
func TestDeliverBatch_ALossIsSaidWhereTheBatchesAreAsLargeAsOursMayBe(t *testing.T) {
	t.Parallel()
	const largest = 4 << 20
	for name, size := range map[string]int{"small batches of others": 1000, "large batches of others": largest - 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clusterOf(t, kfake.SeedTopics(1, "t"), kfake.MaxVersions(kversion.V2_7_0()), kfake.BrokerConfigs(map[string]string{"message.max.bytes": fmt.Sprint(largest)}))
			s := sinkOf(t, cluster, func(c *kafka.Config) { c.MaxBytes, c.Timeout = largest, time.Minute })
			ds := sinktest.Deliveries(1, 4)
			for i := range ds {
				ds[i].Payload = []byte(`"` + strings.Repeat("x", 3<<20) + `"`)
			}
			sinktest.Delivered(t, s, ds[:3])
			require.NoError(t, s.Close())
			sinktest.Delivered(t, s, ds[3:])
			require.NoError(t, s.Close())
			makeAnew(t, cluster, "t")
			others, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ProducerBatchMaxBytes(largest), kgo.ProducerBatchCompression(kgo.NoCompression()))
			require.NoError(t, err)
			defer others.Close()
			for range 6 {
				require.NoError(t, others.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: make([]byte, size)}).FirstErr())
			}
			requireLoss(t, s, 5, "has acknowledged offset 3, and another record is there")
		})
	}
}

// What nothing can be said of keeps nothing from being sent, and is asked for once on each link.
func TestDeliverBatch_WhereNothingCanBeSaidItGoesOn(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(*testing.T, *kfake.Cluster){
		"without the right to read": func(_ *testing.T, c *kfake.Cluster) { answerLook(c, kmsg.Fetch, kerr.TopicAuthorizationFailed, -1) },
		"without the right to ask": func(_ *testing.T, c *kfake.Cluster) {
			answerLook(c, kmsg.ListOffsets, kerr.TopicAuthorizationFailed, -1)
		},
		"a leader that is not there yet": func(_ *testing.T, c *kfake.Cluster) { answerLook(c, kmsg.ListOffsets, kerr.NotLeaderForPartition, -1) },
		"a leader that knows late what all replicas have": func(_ *testing.T, c *kfake.Cluster) {
			var asked atomic.Int32
			c.ControlKey(kmsg.ListOffsets.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if asked.Add(1) > 2 {
					return nil, nil, false
				}
				response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
				response.Topics = append(response.Topics, kmsg.ListOffsetsResponseTopic{Topic: "t", Partitions: []kmsg.ListOffsetsResponseTopicPartition{{Partition: 0, Offset: 1}}})
				return response, nil, true
			})
		},
		"a silent broker": func(_ *testing.T, c *kfake.Cluster) {
			c.ControlKey(kmsg.Fetch.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, errors.New("it hangs up"), true
			})
		},
		"retention": func(t *testing.T, c *kfake.Cluster) {
			_, err := kadm.NewClient(clientOf(t, c.ListenAddrs()...)).DeleteRecords(t.Context(), kadm.Offsets{"t": {0: {Topic: "t", Partition: 0, At: 3}}})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
			require.NoError(t, s.Close())
			hide(t, cluster)
			for sequence := 4; sequence < 10; sequence += 2 {
				sinktest.Delivered(t, s, sinktest.Deliveries(sequence, 2))
			}
		})
	}
}

// Partitions for which an answer has no room are asked for again, and a link asks once.
func TestDeliverBatch_ALinkLooksAtEachPartitionOnce(t *testing.T) {
	t.Parallel()
	const partitions = 60
	cluster := clusterOf(t, kfake.NumBrokers(2), kfake.SeedTopics(partitions, "t"))
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Window, c.Timeout = 100, 20*time.Second })
	ds := withPayloads(sinktest.Deliveries(1, 300))
	for i := range ds {
		ds[i].Key, ds[i].Payload = fmt.Sprint(i), fmt.Appendf(nil, "%q", strings.Repeat("x", 12_000))
	}
	sinktest.Delivered(t, s, ds)
	require.NoError(t, s.Close())
	looks := hear(cluster, kmsg.Fetch)
	for sequence := 301; sequence < 500; sequence += 50 {
		sinktest.Delivered(t, s, sinktest.Deliveries(sequence, 50))
	}
	seen := map[int32]bool{}
	for _, request := range looks.all() {
		for _, topic := range request.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				seen[p.Partition] = true
			}
		}
	}
	require.Greater(t, len(seen), partitions/2)
	require.Less(t, len(looks.all()), 20)
	before := len(looks.all())
	sinktest.Delivered(t, s, sinktest.Deliveries(501, 50))
	require.Len(t, looks.all(), before)
}
