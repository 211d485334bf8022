package kafka_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// losing is a connection that closes in place of the answer to a request with records: the broker has them.
type losing struct {
	net.Conn
	armed *atomic.Bool
	lost  func() // called once, when the answer is there
	loses atomic.Bool
}

func (c *losing) Write(b []byte) (int, error) {
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == uint16(kmsg.Produce.Int16()) && c.armed.CompareAndSwap(true, false) {
		c.loses.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *losing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.loses.Load() {
		return n, err
	}
	c.lost()
	_ = c.Conn.Close()
	return 0, io.EOF
}

// Topic t.a refuses its batch, so the client takes a new epoch. The answer for t.b was lost: its batch goes again under its own number,
// and the broker drops it.
func TestDeliverBatch_ABatchWithoutAnAnswerKeepsItsNumberBesideARefusal(t *testing.T) {
	t.Parallel()
	cluster := clusterOf(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t.a", "t.b"))
	require.NoError(t, cluster.MoveTopicPartition("t.a", 0, 0))
	require.NoError(t, cluster.MoveTopicPartition("t.b", 0, 1))
	produced := hear(cluster, kmsg.Produce)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic, c.Timeout = "t.{{.Type}}", 20*time.Second })
	var armed atomic.Bool
	refused := make(chan struct{})
	s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil || address != cluster.ListenAddrs()[1] {
			return conn, err
		}
		return &losing{Conn: conn, armed: &armed, lost: func() {
			select {
			case <-refused:
			case <-t.Context().Done(): // the test has failed
			}
		}}, nil
	})
	s.OnFailure(func() { close(refused) })
	sinktest.Delivered(t, s, typed(1, "a", "b"))
	before := len(produced.all())
	armed.Store(true)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: kerr.MessageTooLarge})
	n, err := sinktest.Deliver(t, s, typed(3, "a", "b"))
	require.Zero(t, n)
	require.True(t, outcome.IsUnknown(err), err)
	require.ErrorIs(t, err, kerr.MessageTooLarge)
	require.Len(t, produced.all()[before:], 3, "t.a once, t.b twice")
	require.Equal(t, map[string][]int{"t.a0": {1}, "t.b0": {2, 4}}, readFake(t, cluster, "t.a", "t.b"))
}

// The broker has the batch, its answer is lost, and then retention makes it forget the producer. Under the client's new epoch it would take the batch once more.
func TestDeliverBatch_ABatchWithoutAnAnswerIsNotNumberedAnew(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 20 * time.Second })
	var armed atomic.Bool
	s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &losing{Conn: conn, armed: &armed, lost: func() { unknownProducer(t, cluster, 2) }}, nil
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
	armed.Store(true)
	began := time.Now()
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 5))
	require.Equal(t, map[string][]int{"t0": {1, 2, 3, 4, 5, 6, 7}}, readFake(t, cluster, "t"))
	require.Zero(t, n)
	require.ErrorContains(t, err, "the broker may have the record")
	require.Equal(t, "outage", sinktest.Class(err), err)
	require.Less(t, time.Since(began), soon)
}

// The broker does not know the producer in the second partition, so the client waits for the answer to its first batch there.
func TestDeliverBatch_AWindowInTwoPartsToAPartitionThatIsNew(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*kfake.Cluster){
		"taken":        func(*kfake.Cluster) {},
		"refused once": func(c *kfake.Cluster) { answerOnce(c, kerr.MessageTooLarge) },
		"passing word": func(c *kfake.Cluster) { answerOnce(c, kerr.NotLeaderForPartition) },
		"no answer":    loseAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clusterOf(t, kfake.SeedTopics(2, "t"))
			first, second := keysOf(t)
			// A partition that never had a record takes no number above 0.
			sinktest.Delivered(t, sinkOf(t, cluster, nil), withKey(1, 2, second))
			s := sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 20 * time.Second })
			s.SendPart(4)
			sinktest.Delivered(t, s, withKey(3, 1, first))
			fail(cluster)
			sinktest.Delivered(t, s, withKey(4, 8, second))
			all := readFake(t, cluster, "t")
			for partition, sequences := range all {
				require.True(t, slices.IsSorted(sequences), "%s: %v", partition, sequences)
			}
			require.Len(t, slices.Concat(all["t0"], all["t1"]), 11, all)
		})
	}
}

// The same at a real broker: in a partition where it does not know the producer it takes any number.
func TestDeliverBatch_NothingBehindARefusedFirstPartLandsInAPartitionThatIsNew(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, limited)
	first, second := keysOf(t)
	sinktest.Delivered(t, b.sink(t, nil), withKey(1, 2, second))
	s := b.sink(t, inBatches)
	s.SendPart(4)
	sinktest.Delivered(t, s, withKey(3, 1, first))
	ds := withKey(4, 12, second)
	ds[0].Payload = incompressible()
	n, err := sinktest.Deliver(t, s, ds)
	require.Zero(t, n)
	require.True(t, processor.IsPermanent(err), err)
	all := b.read(t)
	slices.SortStableFunc(all, func(a, b message) int { return strings.Compare(a.Partition, b.Partition) })
	require.Equal(t, "3 1 2", sequences(all), "partition 0, and 1")
}

// withKey are n records with a key.
func withKey(sequence, n int, key string) []processor.Delivery {
	ds := sinktest.Deliveries(sequence, n)
	for i := range ds {
		ds[i].Key = key
	}
	return ds
}

// keysOf are a key of partition 0, and one of partition 1.
func keysOf(t *testing.T) (first, second string) {
	t.Helper()
	partitions := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for i := 0; first == "" || second == ""; i++ {
		if key := fmt.Sprint(i); partitions.Partition(&kgo.Record{Key: []byte(key)}, 2) == 0 {
			first = key
		} else {
			second = key
		}
	}
	return first, second
}
