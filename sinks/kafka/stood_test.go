package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const decided = 4 // the epoch after a decision: sinktest's is 3

// requireLoss delivers records, which halts them as refused until an operator has decided.
func requireLoss(t testing.TB, s *kafka.Sink, sequence int, text string) {
	t.Helper()
	for range 2 {
		n, err := sinktest.Deliver(t, s, sinktest.Deliveries(sequence, 1))
		require.Zero(t, n)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "`seek` back")
		require.True(t, processor.IsRefused(err), err)
		require.True(t, outcome.IsReportedOnce(err), "another sink would not know of it")
		require.False(t, processor.IsPermanent(err), err)
	}
}

// makeAnew deletes the topic and makes it again.
func (b *bench) makeAnew(t testing.TB) {
	t.Helper()
	deleted, err := b.admin.DeleteTopic(t.Context(), b.topic)
	require.NoError(t, err)
	require.NoError(t, deleted.Err)
	var made kadm.CreateTopicResponse
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		made, err = b.admin.CreateTopic(t.Context(), 1, 1, nil, b.topic)
		require.NoError(c, err)
		require.NoError(c, made.Err)
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { // the broker hears of it from its controller
		topics, err := b.admin.ListTopics(t.Context(), b.topic)
		return err == nil && topics[b.topic].ID == made.ID
	}, time.Minute, 10*time.Millisecond)
}

var ofARecord = func(c *kafka.Config) { c.Topic += "{{if false}}{{.Type}}{{end}}" }

// What consumers had not read of it is gone. A link knows that by itself, the next one does not.
func TestDeliverBatch_ATopicThatIsMadeAnewIsSaid(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional, "by a part of a record": ofARecord} {
		for link, end := range map[string]func(*kafka.Sink) error{"over its link": func(*kafka.Sink) error { return nil }, "over a new link": (*kafka.Sink).Close} {
			t.Run(name+" "+link, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, 1, nil)
				s := b.sink(t, change)
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
				b.makeAnew(t)
				require.NoError(t, end(s))
				requireLoss(t, s, 4, "what was acknowledged and not read there is gone")
				sinktest.Delivered(t, s, sinktest.Under(decided, sinktest.Deliveries(4, 2)))
				require.NoError(t, s.Close())
				sinktest.Delivered(t, s, sinktest.Under(decided, sinktest.Deliveries(6, 2))) // the new topic is the one that counts
				require.Equal(t, "4 5 6 7", sequences(b.read(t)))
			})
		}
	}
}

// Before Kafka 4.0 records name their topic, so the new one takes them. Its offsets begin anew.
func TestDeliverBatch_ATopicThatIsMadeAnewIsSaidByItsOffsets(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional, "by a part of a record": ofARecord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := old(t, "t")
			answerLook(cluster, kmsg.ListOffsets, kerr.TopicAuthorizationFailed, 3) // on each link from the second on, so the offsets alone show it
			s := sinkOf(t, cluster, change)
			for sequence := 1; sequence < 6; sequence += 2 {
				sinktest.Delivered(t, s, sinktest.Deliveries(sequence, 2))
				require.NoError(t, s.Close())
			}
			makeAnew(t, cluster, "t")
			requireLoss(t, s, 7, "an older copy of the broker's data was put back, the topic was made anew")
			visible := "7"
			if name == "with transactions" {
				visible = "" // it is not committed: readers would find it behind the gap
			}
			require.Equal(t, visible, sequences(readTopic(t, cluster.ListenAddrs()[0], "t")))
			for range 2 {
				sinktest.Delivered(t, s, sinktest.Under(decided, sinktest.Deliveries(7, 3)))
				require.NoError(t, s.Close())
			}
		})
	}
}

// One decision answers all losses, so the operator has to hear of all.
func TestDeliverBatch_EveryTopicThatIsMadeAnewIsSaid(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]*kversion.Versions{"by its offsets": kversion.V2_7_0(), "by its id": kversion.V3_9_0()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clusterOf(t, kfake.SeedTopics(1, "t.a", "t.b", "t.c"), kfake.MaxVersions(version))
			s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Topic = "t.{{.Type}}" })
			sinktest.Delivered(t, s, typed(1, "a", "b", "c"))
			require.NoError(t, s.Close())
			makeAnew(t, cluster, "t.a", "t.b", "t.c")
			n, err := sinktest.Deliver(t, s, typed(4, "a", "b", "c"))
			require.Zero(t, n)
			require.True(t, processor.IsRefused(err), err)
			require.ErrorContains(t, err, `topic "t.a"`)
			require.ErrorContains(t, err, `topic "t.b"`)
			require.ErrorContains(t, err, `topic "t.c"`)
			sinktest.Delivered(t, s, sinktest.Under(decided, typed(4, "a", "b", "c")))
		})
	}
}

// Without transactions each topic begins with a window of its own. A new link asks for all that are known.
func TestDeliverBatch_TopicsThatAreMadeAnewAtOnceAreOneHalt(t *testing.T) {
	t.Parallel()
	topics := []string{"t.a", "t.b", "t.c", "t.d"}
	cluster := clusterOf(t, kfake.SeedTopics(1, topics...), kfake.MaxVersions(kversion.V3_9_0()))
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = "t.{{.Type}}" })
	sinktest.Delivered(t, s, typed(1, "a", "b", "c", "d"))
	require.NoError(t, s.Close())
	makeAnew(t, cluster, topics...)
	n, err := sinktest.Deliver(t, s, typed(5, "a", "b", "c", "d"))
	require.Zero(t, n)
	require.True(t, processor.IsRefused(err), err)
	for _, topic := range topics {
		require.ErrorContains(t, err, topic)
	}
	sinktest.Delivered(t, s, sinktest.Under(decided, typed(5, "a", "b", "c", "d")))
}

// Each decision of an operator raises the epoch, and so does a take-over: what was acknowledged is kept over any number of them.
func TestDeliverBatch_ManyDecisionsForgetNoTopic(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
	require.NoError(t, s.Close())
	makeAnew(t, cluster, "t")
	n, err := sinktest.Deliver(t, s, sinktest.Under(9, sinktest.Deliveries(4, 1)))
	require.Zero(t, n)
	require.True(t, processor.IsRefused(err), err)
	require.ErrorContains(t, err, "another id")
	sinktest.Delivered(t, s, sinktest.Under(10, sinktest.Deliveries(4, 1)))
}

// Of two partitions the second has lost what it had acknowledged, and the first lacks replicas.
func TestDeliverBatch_ALossIsSaidOfThePartitionThatHasIt(t *testing.T) {
	t.Parallel()
	cluster := clusterOf(t, kfake.SeedTopics(1, "t.a", "t.b"))
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = "t.{{.Type}}" })
	sinktest.Delivered(t, s, typed(1, "a", "b"))
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: kerr.NotEnoughReplicas, Count: -1})
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.b", Err: kerr.OutOfOrderSequenceNumber, Count: -1})
	n, err := sinktest.Deliver(t, s, typed(3, "a", "b"))
	require.Zero(t, n)
	require.True(t, processor.IsRefused(err), err)
	require.ErrorContains(t, err, `what it had acknowledged in topic "t.b"`) // and in t.a, if the client gave up its batch before it was refused
}

func TestDeliverBatch_ABrokerThatLostWhatItAcknowledgedIsSaid(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ownBench(t)
			s := b.sink(t, change)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
			copied := b.copied(t)
			deliverAll(t, s, 4, 3)
			b.setBack(t, copied)
			require.Eventually(t, func() bool {
				n, err := sinktest.Deliver(t, s, sinktest.Deliveries(7, 1))
				require.Zero(t, n)
				require.Error(t, err)
				return processor.IsRefused(err)
			}, 2*time.Minute, time.Second, "it may be fenced first")
			requireLoss(t, s, 7, "compare the topic with the table")
			sinktest.Delivered(t, s, sinktest.Under(decided, sinktest.Deliveries(4, 4)))
		})
	}
}

// A topic that is gone took with it what was acknowledged. After the operator's decision it is like
// any topic that is not there.
func TestDeliverBatch_ATopicThatIsGoneIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional, "by a part of a record": ofARecord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 2 * time.Second }, change)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
			require.NoError(t, cluster.DeleteTopic("t"))
			requireLoss(t, s, 4, "not read there is gone")
			_, err := sinktest.Deliver(t, s, sinktest.Under(decided, sinktest.Deliveries(4, 1)))
			require.ErrorContains(t, err, "make the topic, or correct topic")
			require.NotContains(t, err.Error(), "is gone")
			require.NoError(t, cluster.CreateTopic("t", 1, nil))
			sinktest.Delivered(t, s, sinktest.Under(decided, sinktest.Deliveries(4, 1)))
		})
	}
}

// The id of a topic is asked for once on a link, and offsets of several partitions are not mixed up.
func TestDeliverBatch_NoLossIsSaidWhereNoneIs(t *testing.T) {
	t.Parallel()
	for name, change := range plainAndTransactional {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clusterOf(t, kfake.SeedTopics(3, "t"))
			s := sinkOf(t, cluster, change)
			for sequence := 1; sequence < 60; sequence += 20 {
				ds := sinktest.Deliveries(sequence, 20)
				for i := range ds {
					ds[i].Key = string(rune('a' + (i*i)%7))
				}
				sinktest.Delivered(t, s, ds)
				if sequence == 21 {
					require.NoError(t, s.Close())
				}
			}
			asked := hear(cluster, kmsg.Metadata)
			sinktest.Delivered(t, s, sinktest.Deliveries(61, 20))
			require.Empty(t, asked.all(), "the link knows the topic")
		})
	}
}

// A broker that takes no number of ours says so too where nothing is lost.
func TestDeliverBatch_AnUnknownProducerProvesNoLoss(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, nil)
	answerProduce(cluster, kerr.UnknownProducerID, func(r *kmsg.ProduceRequest) bool { return batches(t, r)[0].FirstSequence == 4 })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 4))
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(5, 1))
	require.ErrorIs(t, err, kerr.UnknownProducerID)
	require.False(t, processor.IsRefused(err), err)
	sinktest.Delivered(t, s, sinktest.Deliveries(5, 1))
}
