package kafka_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// fake is a broker that answers as it is told.
func fake(t *testing.T) *kfake.Cluster {
	t.Helper()
	return clusterOf(t, kfake.SeedTopics(1, "t"))
}

// typed are records of these types, one of each in this order.
func typed(sequence int, types ...string) []processor.Delivery {
	ds := sinktest.Deliveries(sequence, len(types))
	for i := range ds {
		ds[i].Type = types[i]
	}
	return ds
}

// sinkOf sends to it, ten at a time and as they are.
func sinkOf(t testing.TB, cluster *kfake.Cluster, changes ...func(*kafka.Config)) *kafka.Sink {
	t.Helper()
	return sinktest.Made(t, kafka.New, kafka.Config{Brokers: cluster.ListenAddrs(), Topic: "t", Window: 10, Compression: "none", Timeout: 5 * time.Second}, changes...)
}

// answerProduce answers the requests to produce that are asked for with a code.
func answerProduce(cluster *kfake.Cluster, code *kerr.Error, asked func(*kmsg.ProduceRequest) bool) {
	cluster.ControlKey(kmsg.Produce.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request := kreq.(*kmsg.ProduceRequest)
		if !asked(request) {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range request.Topics {
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				partition := kmsg.NewProduceResponseTopicPartition()
				partition.Partition, partition.ErrorCode, partition.BaseOffset = p.Partition, code.Code, -1
				answer.Partitions = append(answer.Partitions, partition)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
}

// from asks for the requests from the given one on.
func from(first int) func(*kmsg.ProduceRequest) bool {
	requests := 0
	return func(*kmsg.ProduceRequest) bool {
		requests++
		return requests >= first
	}
}

func TestDeliverBatch_TheBrokersCodeDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code      *kerr.Error
		permanent bool
		unknown   bool
		fix       string
	}{
		{kerr.MessageTooLarge, true, false, "raise max.message.bytes"},
		{kerr.RecordListTooLarge, true, false, "raise segment.bytes"},
		{kerr.InvalidRecord, true, false, "a compacted topic takes no record without a key"},
		{kerr.InvalidTimestamp, false, false, "correct the clock of this machine"},
		{kerr.TopicAuthorizationFailed, false, false, "grant the user Write and Describe on the topic"},
		{kerr.ClusterAuthorizationFailed, false, false, "grant the user IdempotentWrite"},
		{kerr.OutOfOrderSequenceNumber, false, false, "compare the topic with the table, and `seek` back"},
		{kerr.ProducerFenced, false, false, "the next attempt has a producer id of its own"},
		{kerr.UnknownProducerID, false, false, "compare the topic with the source"},
		{kerr.NotEnoughReplicas, false, true, "bring replicas back"},
		{kerr.RequestTimedOut, false, true, "see whether the partition has its in-sync replicas"},
		{kerr.UnknownServerError, false, true, ""},
		{kerr.UnsupportedForMessageFormat, false, false, "raise message.format.version"},
		{kerr.UnsupportedCompressionType, false, false, "choose another compression: none is taken by every broker"},
		{kerr.UnsupportedVersion, false, false, "is too old: replace it"},
		{kerr.InvalidRequiredAcks, false, false, "does not take acks=all"},
		{kerr.InvalidRequest, false, false, "see the log of the broker"},
		{kerr.SecurityDisabled, false, false, "leave sasl out"},
		{kerr.PolicyViolation, false, false, "see which policy the broker"},
		{kerr.UnknownTopicID, false, false, "the topic was deleted, and made anew if it is there"},
	} {
		t.Run(c.code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, nil)
			answerProduce(cluster, c.code, from(2))
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 4)) // the first goes alone, being the first
			require.Equal(t, 1, n)
			require.ErrorContains(t, err, `record "2"`)
			require.ErrorContains(t, err, c.fix)
			require.Equal(t, c.permanent, processor.IsPermanent(err), err)
			refused := []*kerr.Error{kerr.UnsupportedForMessageFormat, kerr.UnknownTopicID, kerr.OutOfOrderSequenceNumber, kerr.UnsupportedCompressionType,
				kerr.UnsupportedVersion, kerr.InvalidRequiredAcks, kerr.InvalidRequest, kerr.SecurityDisabled, kerr.PolicyViolation}
			require.Equal(t, strings.HasPrefix(c.fix, "grant the user") || slices.Contains(refused, c.code), processor.IsRefused(err), err)
			unreached := []*kerr.Error{kerr.InvalidTimestamp, kerr.ProducerFenced, kerr.NotEnoughReplicas, kerr.RequestTimedOut}
			require.Equal(t, slices.Contains(unreached, c.code), processor.IsUnreached(err), err)
			require.Equal(t, c.unknown, outcome.IsUnknown(err), err)
			if !c.unknown {
				require.True(t, errors.Is(err, c.code), err)
			}
		})
	}
}

func TestDeliverBatch_SaysWhereNobodyListens(t *testing.T) {
	t.Parallel()
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{address}, Topic: "t"})
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, address+": connect: connection refused; start the broker there, or correct the address: ")
}

func TestDeliverBatch_WhatWasNotSentIsNotSaidToBeUncommitted(t *testing.T) {
	t.Parallel()
	s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: fake(t).ListenAddrs(), Topic: "missing", TransactionalID: "x"})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent: UNKNOWN_TOPIC_OR_PARTITION")
	require.True(t, processor.IsRefused(err), "no record has a part in the topic's name: %v", err)
}
