package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
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

// muteConn gives no answers once it is muted.
type muteConn struct {
	net.Conn
	muted  func() bool
	closed chan struct{}
	once   sync.Once
}

func (c *muteConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.muted() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *muteConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// newMute is a cluster of two, and a sink by type: the leader of t.b gives no answers on the connections that it has from mute on.
func newMute(t *testing.T) (cluster *kfake.Cluster, s *kafka.Sink, mute func()) {
	t.Helper()
	cluster = clusterOf(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t.a", "t.b"))
	require.NoError(t, cluster.MoveTopicPartition("t.a", 0, 0))
	require.NoError(t, cluster.MoveTopicPartition("t.b", 0, 1))
	var muted atomic.Bool
	s = sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = "t.{{.Type}}"; c.Timeout = 3 * time.Second })
	silent := cluster.ListenAddrs()[1]
	s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil || address != silent || muted.Load() {
			return conn, err
		}
		return &muteConn{Conn: conn, muted: muted.Load, closed: make(chan struct{})}, nil
	})
	return cluster, s, func() { muted.Store(true) }
}

// The leader of t.b took records and is silent; that of t.a refuses its batch. The outcome of b is unknown.
func TestDeliverBatch_APartitionThatIsSilentBesideARefusalLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]bool{"together only": false, "a poison record": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, s, mute := newMute(t)
			sinktest.Delivered(t, s, typed(1, "a", "b"))
			ds := typed(3, "a", "b", "a", "a")
			ds[0].Payload, ds[2].Payload, ds[3].Payload = []byte(`"mark-0"`), []byte(`"mark-2"`), []byte(`"mark-3"`)
			answerProduce(cluster, kerr.RecordListTooLarge, func(request *kmsg.ProduceRequest) bool {
				r := request.Topics[0].Partitions[0].Records
				if poison {
					return bytes.Contains(r, []byte("mark-0"))
				}
				return bytes.Contains(r, []byte("mark-0")) && bytes.Contains(r, []byte("mark-3"))
			})
			mute()
			_, err := sinktest.Deliver(t, s, ds)
			client, cerr := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("t.b"))
			require.NoError(t, cerr)
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			copies := 0
			for ctx.Err() == nil {
				client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
					if string(r.Headers[0].Value) == ds[1].DedupKey() {
						copies++
					}
				})
			}
			require.False(t, err == nil && copies > 1, "one successful call, %d copies", copies)
			require.False(t, err != nil && !outcome.IsUnknown(err) && copies > 0, "b may be there, and it does not say so")
		})
	}
}

// Topic t.a has a word that is no refusal, t.b is silent after it took its record: is it said that the outcome is unknown?
func TestDeliverBatch_APartitionThatIsSilentBesideAWordLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.InvalidTimestamp, kerr.TopicAuthorizationFailed, kerr.CorruptMessage} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster, s, mute := newMute(t)
			sinktest.Delivered(t, s, typed(1, "a", "b"))
			mute()
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t.a", Err: code, Count: -1})
			n, err := sinktest.Deliver(t, s, typed(3, "a", "b"))
			require.Zero(t, n)
			require.True(t, outcome.IsUnknown(err), "what is behind it may be there: %v", err)
		})
	}
}

type endTxnConn struct {
	net.Conn
	down *atomic.Bool
}

func (c *endTxnConn) Write(b []byte) (int, error) {
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == uint16(kmsg.EndTxn.Int16()) {
		c.down.Store(true)
	}
	if c.down.Load() {
		_ = c.Conn.Close()
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return c.Conn.Write(b)
}

// not a byte of the commit was ever written.
func TestDeliverBatch_ACommitThatWasNeverAskedForIsKnown(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	ends := hear(cluster, kmsg.EndTxn)
	var down atomic.Bool
	s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 4 * time.Second })
	s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &endTxnConn{conn, &down}, nil
	})
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
	require.Zero(t, n)
	require.Error(t, err)
	require.Empty(t, ends.all())
	require.False(t, outcome.IsUnknown(err), "nothing was asked: %v", err)
}

// words on the transaction, not on the record.
func TestDeliverBatch_AWordOnTheTransactionIsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.TransactionAbortable, kerr.InvalidTxnState, kerr.NetworkException, kerr.TransactionCoordinatorFenced} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, transactional)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			answerProduce(cluster, code, from(1))
			_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
			require.True(t, processor.IsUnreached(err), "an attempt of the record: %v", err)
		})
	}
}

// with quote_answers: false the error still says what is lost, and the next step.
func TestDeliverBatch_HiddenAnswersHideNoNextStep(t *testing.T) {
	t.Parallel()
	for code, text := range map[*kerr.Error]string{
		kerr.OutOfOrderSequenceNumber: "`seek` back",
		kerr.UnknownTopicOrPartition:  "`seek` back",
		kerr.MessageTooLarge:          "raise max.message.bytes",
		kerr.NotEnoughReplicas:        "may have the record",
	} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, func(c *kafka.Config) { c.HideAnswers = true })
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			answerProduce(cluster, code, from(1))
			_, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 1))
			require.ErrorContains(t, err, text)
			require.ErrorContains(t, err, `send record "3"`)
		})
	}
}
