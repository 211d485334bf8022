package kafka_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
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
		n, err := deliver(t, s, sinktest.Deliveries(sequence, 1))
		require.Zero(t, n)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "`seek` back")
		require.True(t, processor.IsRefused(err), err)
		require.True(t, outcome.IsFinal(err), "another sink would not know of it")
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
				_, err := deliver(t, s, sinktest.Deliveries(1, 3))
				require.NoError(t, err)
				b.makeAnew(t)
				require.NoError(t, end(s))
				requireLoss(t, s, 4, "what was acknowledged and not read there is gone")
				n, err := deliver(t, s, underEpoch(decided, sinktest.Deliveries(4, 2)))
				require.NoError(t, err)
				require.Equal(t, 2, n)
				require.NoError(t, s.Close())
				_, err = deliver(t, s, underEpoch(decided, sinktest.Deliveries(6, 2)))
				require.NoError(t, err, "the new topic is the one that counts")
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
			cluster := old(t)
			answerLook(cluster, kmsg.ListOffsets, kerr.TopicAuthorizationFailed, 3) // on each link from the second on, so the offsets alone show it
			var err error
			s := sinkOf(t, cluster, change)
			for sequence := 1; sequence < 6; sequence += 2 {
				_, err = deliver(t, s, sinktest.Deliveries(sequence, 2))
				require.NoError(t, err)
				require.NoError(t, s.Close())
			}
			require.NoError(t, cluster.DeleteTopic("t"))
			require.NoError(t, cluster.CreateTopic("t", 1, nil))
			requireLoss(t, s, 7, "an older copy of the broker's data was put back, the topic was made anew")
			visible := "7"
			if name == "with transactions" {
				visible = "" // it is not committed: readers would find it behind the gap
			}
			require.Equal(t, visible, sequences(readTopic(t, cluster.ListenAddrs()[0], "t")))
			for range 2 {
				n, err := deliver(t, s, underEpoch(decided, sinktest.Deliveries(7, 3)))
				require.NoError(t, err)
				require.Equal(t, 3, n)
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
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t.a", "t.b", "t.c"), kfake.MaxVersions(version))
			require.NoError(t, err)
			t.Cleanup(cluster.Close)
			s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Topic = "t.{{.Type}}" })
			_, err = deliver(t, s, typed(1, "a", "b", "c"))
			require.NoError(t, err)
			require.NoError(t, s.Close())
			for _, topic := range []string{"t.a", "t.b", "t.c"} {
				require.NoError(t, cluster.DeleteTopic(topic))
				require.NoError(t, cluster.CreateTopic(topic, 1, nil))
			}
			n, err := deliver(t, s, typed(4, "a", "b", "c"))
			require.Zero(t, n)
			require.True(t, processor.IsRefused(err), err)
			require.ErrorContains(t, err, `topic "t.a"`)
			require.ErrorContains(t, err, `topic "t.b"`)
			require.ErrorContains(t, err, `topic "t.c"`)
			n, err = deliver(t, s, underEpoch(decided, typed(4, "a", "b", "c")))
			require.NoError(t, err)
			require.Equal(t, 3, n)
		})
	}
}

// Without transactions each topic begins with a window of its own. A new link asks for all that are known.
func TestDeliverBatch_TopicsThatAreMadeAnewAtOnceAreOneHalt(t *testing.T) {
	t.Parallel()
	topics := []string{"t.a", "t.b", "t.c", "t.d"}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...), kfake.MaxVersions(kversion.V3_9_0()))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = "t.{{.Type}}" })
	_, err = deliver(t, s, typed(1, "a", "b", "c", "d"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	for _, topic := range topics {
		require.NoError(t, cluster.DeleteTopic(topic))
		require.NoError(t, cluster.CreateTopic(topic, 1, nil))
	}
	n, err := deliver(t, s, typed(5, "a", "b", "c", "d"))
	require.Zero(t, n)
	require.True(t, processor.IsRefused(err), err)
	for _, topic := range topics {
		require.ErrorContains(t, err, topic)
	}
	n, err = deliver(t, s, underEpoch(decided, typed(5, "a", "b", "c", "d")))
	require.NoError(t, err)
	require.Equal(t, len(topics), n)
}

// Each decision of an operator raises the epoch, and so does a take-over: what was acknowledged is kept over any number of them.
func TestDeliverBatch_ManyDecisionsForgetNoTopic(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, nil)
	_, err := deliver(t, s, sinktest.Deliveries(1, 3))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, cluster.DeleteTopic("t"))
	require.NoError(t, cluster.CreateTopic("t", 1, nil))
	n, err := deliver(t, s, underEpoch(9, sinktest.Deliveries(4, 1)))
	require.Zero(t, n)
	require.True(t, processor.IsRefused(err), err)
	require.ErrorContains(t, err, "another id")
	n, err = deliver(t, s, underEpoch(10, sinktest.Deliveries(4, 1)))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Of two partitions the second has lost what it had acknowledged, and the first lacks replicas.
func TestDeliverBatch_ALossIsSaidOfThePartitionThatHasIt(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t.a", "t.b"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = "t.{{.Type}}" })
	_, err = deliver(t, s, typed(1, "a", "b"))
	require.NoError(t, err)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: kerr.NotEnoughReplicas, Count: -1})
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.b", Err: kerr.OutOfOrderSequenceNumber, Count: -1})
	n, err := deliver(t, s, typed(3, "a", "b"))
	require.Zero(t, n)
	require.True(t, processor.IsRefused(err), err)
	require.ErrorContains(t, err, `what it had acknowledged in topic "t.b"`) // and in t.a, if the client gave up its batch before it was refused
}

func TestDeliverBatch_ABrokerThatLostWhatItAcknowledgedIsSaid(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := brokertest.NewKafka(t, broker.KafkaConfig{})
			b := benchOf(t, k, 1, nil)
			s := b.sink(t, change)
			_, err := deliver(t, s, sinktest.Deliveries(1, 3))
			require.NoError(t, err)
			copied := filepath.Join(t.TempDir(), "logs")
			require.NoError(t, k.Kill(t.Context()))
			require.NoError(t, copyData(k.Data(), copied))
			require.NoError(t, k.Start(t.Context()))
			deliverAll(t, s, 4, 3)
			require.NoError(t, k.Kill(t.Context()))
			require.NoError(t, os.RemoveAll(k.Data()))
			require.NoError(t, copyData(copied, k.Data()))
			require.NoError(t, k.Start(t.Context()))
			require.Eventually(t, func() bool {
				n, err := deliver(t, s, sinktest.Deliveries(7, 1))
				require.Zero(t, n)
				require.Error(t, err)
				return processor.IsRefused(err)
			}, 2*time.Minute, time.Second, "it may be fenced first")
			requireLoss(t, s, 7, "compare the topic with the table")
			n, err := deliver(t, s, underEpoch(decided, sinktest.Deliveries(4, 4)))
			require.NoError(t, err)
			require.Equal(t, 4, n)
		})
	}
}

// copyData keeps the owner of the files: the broker runs as another user than root.
func copyData(from, to string) error { return exec.Command("cp", "-a", from, to).Run() }

// deliverAll tries again, as a processor does.
func deliverAll(t testing.TB, s *kafka.Sink, sequence, records int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		n, err := deliver(t, s, sinktest.Deliveries(sequence, records))
		sequence, records = sequence+n, records-n
		require.NoError(c, err)
	}, 2*time.Minute, 100*time.Millisecond)
}

// A topic that is gone took with it what was acknowledged. After the operator's decision it is like
// any topic that is not there.
func TestDeliverBatch_ATopicThatIsGoneIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional, "by a part of a record": ofARecord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, func(c *kafka.Config) {
				c.Timeout = 2 * time.Second
				if change != nil {
					change(c)
				}
			})
			_, err := deliver(t, s, sinktest.Deliveries(1, 3))
			require.NoError(t, err)
			require.NoError(t, cluster.DeleteTopic("t"))
			requireLoss(t, s, 4, "not read there is gone")
			_, err = deliver(t, s, underEpoch(decided, sinktest.Deliveries(4, 1)))
			require.ErrorContains(t, err, "make the topic, or correct topic")
			require.NotContains(t, err.Error(), "is gone")
			require.NoError(t, cluster.CreateTopic("t", 1, nil))
			n, err := deliver(t, s, underEpoch(decided, sinktest.Deliveries(4, 1)))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		})
	}
}

// The id of a topic is asked for once on a link, and offsets of several partitions are not mixed up.
func TestDeliverBatch_NoLossIsSaidWhereNoneIs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "t"))
			require.NoError(t, err)
			t.Cleanup(cluster.Close)
			s := sinkOf(t, cluster, change)
			for sequence := 1; sequence < 60; sequence += 20 {
				ds := sinktest.Deliveries(sequence, 20)
				for i := range ds {
					ds[i].Key = string(rune('a' + (i*i)%7))
				}
				_, err := deliver(t, s, ds)
				require.NoError(t, err)
				if sequence == 21 {
					require.NoError(t, s.Close())
				}
			}
			asked := hear(cluster, kmsg.Metadata)
			_, err = deliver(t, s, sinktest.Deliveries(61, 20))
			require.NoError(t, err)
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
	_, err := deliver(t, s, sinktest.Deliveries(1, 4))
	require.NoError(t, err)
	_, err = deliver(t, s, sinktest.Deliveries(5, 1))
	require.ErrorIs(t, err, kerr.UnknownProducerID)
	require.False(t, processor.IsRefused(err), err)
	_, err = deliver(t, s, sinktest.Deliveries(5, 1))
	require.NoError(t, err)
}
