package kafka_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
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

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// turns are records of these types in turns.
func turns(sequence, n int, types ...string) []processor.Delivery {
	all := make([]string, n)
	for i := range all {
		all[i] = types[i%len(types)]
	}
	return typed(sequence, all...)
}

// enlarge gives the records of a type a payload of so many bytes, which does not get smaller.
func enlarge(ds []processor.Delivery, typ string, n int) {
	for i := range ds {
		if ds[i].Type == typ {
			ds[i].Payload = fmt.Appendf(nil, "%q", bytes.Repeat([]byte("x"), n))
		}
	}
}

// Of topic a each record fits, and no two together. The other topic is healthy.
func TestDeliverBatch_ACallThatSucceedsHasEachRecordOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": func(*kafka.Config) {}, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, 1, map[string]string{"max.message.bytes": "10000"})
			b.create(t, b.topic+".b", 1, nil)
			s := b.sink(t, func(c *kafka.Config) {
				change(c)
				c.Topic, c.Compression, c.Window = b.topic+`{{if eq .Type "b"}}.b{{end}}`, "none", 40
			})
			for first := 1; first <= 81; first += 40 {
				ds := turns(first, 40, "a", "b")
				enlarge(ds, "a", 6000)
				sinktest.Delivered(t, s, ds)
			}
			var odd, even []string
			for i := 1; i <= 120; i += 2 {
				odd, even = append(odd, strconv.Itoa(i)), append(even, strconv.Itoa(i+1))
			}
			require.Equal(t, strings.Join(odd, " "), sequences(b.read(t)))
			require.Equal(t, strings.Join(even, " "), sequences(readTopic(t, b.broker.Addr(), b.topic+".b")))
		})
	}
}

// several are the topics t.a, t.b and t.c of three partitions, with a broker for each or one for all. The client takes a new epoch
// after a refusal, and the fake refuses what another broker gets under the old one later. Kafka has the epochs by partition.
func several(t *testing.T, brokers int) *kfake.Cluster {
	t.Helper()
	topics := []string{"t.a", "t.b", "t.c"}
	cluster := clusterOf(t, kfake.NumBrokers(brokers), kfake.SeedTopics(3, topics...))
	for node, topic := range topics {
		for partition := range int32(3) {
			require.NoError(t, cluster.MoveTopicPartition(topic, partition, int32(node%brokers)))
		}
	}
	return cluster
}

// readFake reads what the topics of a cluster have, by topic and partition, in its order.
func readFake(t *testing.T, cluster *kfake.Cluster, topics ...string) map[string][]int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	require.NoError(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topics...)
	require.NoError(t, err)
	left := 0 // partitions; the last record of one may be the end of a transaction
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left++
		}
	})
	all := map[string][]int{}
	for left > 0 {
		fetches := client.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if end, _ := ends.Lookup(r.Topic, r.Partition); r.Offset == end.Offset-1 {
				left--
			}
			for _, h := range r.Headers {
				if h.Key == "ordered-sequence" {
					sequence, err := strconv.Atoi(string(h.Value))
					require.NoError(t, err)
					partition := fmt.Sprint(r.Topic, r.Partition)
					all[partition] = append(all[partition], sequence)
				}
			}
		})
	}
	return all
}

// larger asks for requests with a batch of topics of the type that has more than so many records.
func larger(t *testing.T, records int, marks ...string) func(*kmsg.ProduceRequest) bool {
	return func(request *kmsg.ProduceRequest) bool {
		return slices.ContainsFunc(batches(t, request), func(batch kmsg.RecordBatch) bool {
			return int(batch.NumRecords) > records && slices.ContainsFunc(marks, func(m string) bool { return bytes.Contains(batch.Records, []byte(m)) })
		})
	}
}

// marked puts the type of each record into its payload.
func marked(ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Payload = fmt.Appendf(nil, "%q", "mark-"+ds[i].Type)
	}
	return ds
}

func TestDeliverBatch_WhateverIsTooLargeEachPartitionKeepsItsOrderWithoutACopy(t *testing.T) {
	t.Parallel()
	for seed := range int64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tooLargeByChance(t, rand.New(rand.NewSource(seed)))
		})
	}
}

func tooLargeByChance(t *testing.T, chance *rand.Rand) {
	t.Helper()
	cluster := several(t, 3)
	s := sinkOf(t, cluster, func(c *kafka.Config) {
		c.Topic, c.Window, c.Timeout = "t.{{.Type}}", 10+chance.Intn(90), 20*time.Second
	})
	answerProduce(cluster, kerr.MessageTooLarge, larger(t, 1+chance.Intn(6), []string{"mark-a", "mark-b"}[:1+chance.Intn(2)]...))
	ds := sinktest.Deliveries(1, 150)
	for i := range ds {
		ds[i].Type, ds[i].Key = string("abc"[chance.Intn(3)]), fmt.Sprint(chance.Intn(9))
	}
	sinktest.Delivered(t, s, marked(ds))
	seen := 0
	for partition, all := range readFake(t, cluster, "t.a", "t.b", "t.c") {
		require.True(t, slices.IsSorted(all), "%s: %v", partition, all)
		require.Len(t, slices.Compact(slices.Clone(all)), len(all), "%s: %v", partition, all)
		seen += len(all)
	}
	require.Equal(t, 150, seen)
}

// The record that a broker means is found without a copy of what other partitions took meanwhile, and the next call has one.
func TestDeliverBatch_TheSearchForARecordCopiesNothing(t *testing.T) {
	t.Parallel()
	cluster := several(t, 1)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic, c.Window = "t.{{.Type}}", 100 })
	s.SendPart(20)
	answerProduce(cluster, kerr.InvalidRecord, larger(t, 0, "poison"))
	ds := turns(1, 60, "a", "b", "c")
	ds[30].Payload = []byte(`"poison"`)
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 30, n, err)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, `record "31"`)
	for partition, all := range readFake(t, cluster, "t.a", "t.b", "t.c") {
		require.Len(t, slices.Compact(slices.Clone(all)), len(all), "%s: %v", partition, all)
		require.True(t, slices.IsSorted(all), "%s: %v", partition, all)
		require.False(t, strings.HasPrefix(partition, "t.a") && all[len(all)-1] > 30, "behind the record: %v", all)
	}
}

// A refusal costs a connection: a size that a topic takes is kept, over the links, for the calls that follow.
func TestDeliverBatch_ASizeThatATopicRefusesIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": func(*kafka.Config) {}, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := several(t, 3)
			s := sinkOf(t, cluster, func(c *kafka.Config) {
				change(c)
				c.Topic, c.Window, c.Timeout = "t.{{.Type}}", 100, 20*time.Second
			})
			var refused atomic.Int64
			tooLarge := larger(t, 1, "mark-a")
			answerProduce(cluster, kerr.MessageTooLarge, func(request *kmsg.ProduceRequest) bool {
				if !tooLarge(request) {
					return false
				}
				refused.Add(1)
				return true
			})
			sinktest.Delivered(t, s, marked(turns(1, 100, "a", "b")))
			require.LessOrEqual(t, refused.Load(), int64(7), "halves of 50")
			require.Positive(t, refused.Swap(0))
			sinktest.Delivered(t, s, marked(turns(101, 100, "a", "b")))
			require.Zero(t, refused.Load())
		})
	}
}

// What was made small to find a record is large again without it.
func TestDeliverBatch_TheSizesOfASearchAreForgotten(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Window = 100 })
	answerProduce(cluster, kerr.InvalidRecord, larger(t, 0, "poison"))
	ds := sinktest.Deliveries(1, 60)
	ds[40].Payload = []byte(`"poison"`)
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 40, n)
	require.True(t, processor.IsPermanent(err), err)
	produced := hear(cluster, kmsg.Produce)
	sinktest.Delivered(t, s, sinktest.Deliveries(42, 60))
	require.Less(t, len(produced.all()), 10, "the first record, and all others, perhaps in two parts")
}

// The leader of t.b may have taken its record when it failed. That of t.a refuses its batch.
func TestDeliverBatch_AVagueWordBesideARefusalLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	cluster, s, _ := newMute(t)
	sinktest.Delivered(t, s, typed(1, "a", "b"))
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: kerr.MessageTooLarge})
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.b", Err: kerr.UnknownServerError})
	_, err := sinktest.Deliver(t, s, typed(3, "a", "b", "a"))
	require.Error(t, err)
	require.True(t, outcome.IsUnknown(err), err)
}
