package kafka_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// A cluster in the middle of its upgrade: the old leader takes records by name, the next one by the topic's id.
// The old one takes the record, steps down and says NOT_LEADER_OR_FOLLOWER; the new one says MESSAGE_TOO_LARGE.
func TestDeliverBatch_ANoOfABrokerOfAnotherVersionLeavesItOpen(t *testing.T) {
	t.Parallel()
	cluster := clusterOf(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t"))
	first := cluster.LeaderFor("t", 0)
	cluster.ControlKey(kmsg.ApiVersions.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cluster.CurrentNode() != first {
			return nil, nil, false
		}
		response := kreq.ResponseKind().(*kmsg.ApiVersionsResponse)
		for key := int16(0); key <= 60; key++ {
			k := kmsg.RequestForKey(key)
			if k == nil {
				continue
			}
			one := kmsg.NewApiVersionsResponseApiKey()
			one.ApiKey, one.MaxVersion = key, k.MaxVersion()
			if key == kmsg.Produce.Int16() {
				one.MaxVersion = 11
			}
			response.ApiKeys = append(response.ApiKeys, one)
		}
		return response, nil, true
	})
	s := sinkOf(t, cluster, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	n := 0
	var versions []int16
	cluster.ControlKey(kmsg.Produce.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		n++
		code := kerr.MessageTooLarge
		if n == 1 {
			code = kerr.NotLeaderForPartition
			require.NoError(t, cluster.MoveTopicPartition("t", 0, 1-first))
		}
		request := kreq.(*kmsg.ProduceRequest)
		versions = append(versions, request.Version)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range request.Topics {
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				partition := kmsg.NewProduceResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, code.Code
				answer.Partitions = append(answer.Partitions, partition)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.Len(t, versions, 2)
	require.ErrorIs(t, err, kerr.MessageTooLarge)
	require.Equal(t, "unknown", sinktest.Class(err), err)
}

// The coordinator is silent in the commit, or says words that may pass until the time is over. No broker hangs up.
func TestDeliverBatch_ACommitThatIsNotAnsweredIsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{nil, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.ConcurrentTransactions, kerr.NotEnoughReplicas, kerr.RequestTimedOut} {
		name := "silent"
		if code != nil {
			name = code.Message
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 4 * time.Second })
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			cluster.ControlKey(kmsg.EndTxn.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				if code == nil {
					cluster.SleepControl(func() { time.Sleep(6 * time.Second) })
					return nil, nil, false
				}
				response := request.ResponseKind().(*kmsg.EndTxnResponse)
				response.ErrorCode = code.Code
				return response, nil, true
			})
			_, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 2))
			require.Equal(t, "outage", sinktest.Class(err), "an attempt of the record: %v", err)
		})
	}
}

// slowConn has given the bytes to the network when its writer is not scheduled for a while.
type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c slowConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.slow.Load() && len(b) > 14 && b[4] == 0 && b[5] == 0 {
		time.Sleep(3 * time.Second)
	}
	return n, err
}

func TestDeliverBatch_WhatIsBeingWrittenMayBeThere(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 1500 * time.Millisecond })
	var slow atomic.Bool
	s.Dial(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return slowConn{conn, &slow}, err
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	slow.Store(true)
	produced := hear(cluster, kmsg.Produce)
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	waittest.Receive(t, produced.each, "the record is sent")
	require.True(t, outcome.IsUnknown(err), err)
}

// The broker says that it has the batch already, without an offset.
func TestDeliverBatch_ABatchWithoutAnOffsetProvesNoLoss(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, change)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 5))
			answerProduce(cluster, kerr.DuplicateSequenceNumber, from(1))
			sinktest.Delivered(t, s, sinktest.Deliveries(6, 3))
		})
	}
}
