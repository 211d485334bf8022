package kafka_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// fake is a broker that answers as it is told.
func fake(t *testing.T) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

// answerProduce answers each request to produce from the given one on with a code.
func answerProduce(cluster *kfake.Cluster, from int, code int16) {
	requests := 0
	cluster.ControlKey(kmsg.Produce.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if requests++; requests < from {
			return nil, nil, false
		}
		request := kreq.(*kmsg.ProduceRequest)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range request.Topics {
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				partition := kmsg.NewProduceResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, code
				answer.Partitions = append(answer.Partitions, partition)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
}

func TestDeliverBatch_TheBrokersCodeDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code      *kerr.Error
		permanent bool
		unknown   bool
		cure      string
	}{
		{kerr.MessageTooLarge, true, false, "raise max.message.bytes"},
		{kerr.RecordListTooLarge, true, false, "raise segment.bytes"},
		{kerr.InvalidRecord, true, false, "a compacted topic takes no record without a key"},
		{kerr.InvalidTimestamp, true, false, ""},
		{kerr.TopicAuthorizationFailed, false, false, "grant the user Write and Describe on the topic"},
		{kerr.ClusterAuthorizationFailed, false, false, "grant the user IdempotentWrite"},
		{kerr.OutOfOrderSequenceNumber, false, false, "compare the topic with the source"},
		{kerr.ProducerFenced, false, false, "another producer has taken its transactional_id"},
		{kerr.NotEnoughReplicas, false, true, ""},
		{kerr.RequestTimedOut, false, true, ""},
		{kerr.UnknownServerError, false, false, ""},
	} {
		t.Run(c.code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs(), Topic: "t", Window: 10, Timeout: 2 * time.Second})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			answerProduce(cluster, 2, c.code.Code)
			n, err := deliver(t, s, sinktest.Deliveries(1, 4)) // the first goes alone, being the first
			require.Equal(t, 1, n)
			require.ErrorContains(t, err, `record "2"`)
			require.ErrorContains(t, err, c.cure)
			require.Equal(t, c.permanent, processor.IsPermanent(err), err)
			require.Equal(t, c.unknown, timedOut(err), err)
			if !c.unknown {
				require.True(t, errors.Is(err, c.code), err)
			}
		})
	}
}
