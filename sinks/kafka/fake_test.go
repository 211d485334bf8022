package kafka_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// heard are the requests of a kind that a broker gets.
type heard struct {
	mu       sync.Mutex
	requests []kmsg.Request
	each     chan struct{} // told of each; it holds as many as a test makes
}

func hear(cluster *kfake.Cluster, kind kmsg.Key) *heard {
	h := &heard{each: make(chan struct{}, 100)}
	cluster.ControlKey(kind.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.requests = append(h.requests, request)
		h.each <- struct{}{}
		return nil, nil, false
	})
	return h
}

func (h *heard) all() []kmsg.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests
}

// create makes a topic.
func create(t testing.TB, cluster *kfake.Cluster, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	request := kmsg.NewCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = topic, 1, 1
	request.Topics = append(request.Topics, made)
	response, err := request.RequestWith(t.Context(), client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(response.Topics[0].ErrorCode))
}

// TestDeliverBatch_ATopicThatABrokerDoesNotKnowYetIsWaitedFor: one that has just
// started says of every topic that there is none, and that is no refusal of us.
func TestDeliverBatch_ATopicThatABrokerDoesNotKnowYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	metadata := hear(cluster, kmsg.Metadata)
	s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic, c.Timeout = "later", 30*time.Second })
	done := make(chan error, 1)
	go func() {
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		done <- err
	}()
	for range 10 { // the client's own patience ends before
		select {
		case <-metadata.each:
		case err := <-done:
			require.FailNow(t, "it was not waited for", "%v", err)
		}
	}
	create(t, cluster, "later")
	require.NoError(t, waittest.Receive(t, done, "the record is delivered"))
}

// batches are those of one request to produce.
func batches(t testing.TB, request kmsg.Request) (all []kmsg.RecordBatch) {
	t.Helper()
	for _, topic := range request.(*kmsg.ProduceRequest).Topics {
		for _, p := range topic.Partitions {
			var batch kmsg.RecordBatch
			require.NoError(t, batch.ReadFrom(p.Records))
			all = append(all, batch)
		}
	}
	return all
}

func TestDeliverBatch_EveryBatchIsNumberedAndWaitsForAllReplicas(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	produced := hear(cluster, kmsg.Produce)
	sinktest.Delivered(t, sinkOf(t, cluster, nil), sinktest.Deliveries(1, 30))
	const allInSync = -1
	next := int32(0)
	for _, request := range produced.all() {
		require.EqualValues(t, allInSync, request.(*kmsg.ProduceRequest).Acks)
		for _, batch := range batches(t, request) {
			require.GreaterOrEqual(t, batch.ProducerID, int64(0))
			require.Equal(t, next, batch.FirstSequence)
			next += batch.NumRecords
		}
	}
	require.EqualValues(t, 30, next)
}

func TestDeliverBatch_TheFirstRecordOfATopicGoesAloneOnEachLink(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	produced := hear(cluster, kmsg.Produce)
	s := sinkOf(t, cluster, nil)
	for range 2 {
		before := len(produced.all())
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 5))
		first := batches(t, produced.all()[before])
		require.Len(t, first, 1)
		require.EqualValues(t, 1, first[0].NumRecords)
		require.NoError(t, s.Close())
	}
}

// The broker would hear of the first records while the client gets the last one, if
// any were sent by then.
func TestDeliverBatch_TheBrokerHearsOfNoRecordBeforeTheClientHasTheWindow(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	produced := hear(cluster, kmsg.Produce)
	s := sinkOf(t, cluster, nil)
	ds := sinktest.Deliveries(2, 10)
	early := false
	s.SendPart(4)
	s.OnHandingOver(func(r *kgo.Record) {
		if string(r.Headers[0].Value) != ds[9].DedupKey() {
			return
		}
		select {
		case <-produced.each:
			early = true
		case <-time.After(500 * time.Millisecond):
		}
	})
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	waittest.Receive(t, produced.each, "the first record is sent")
	sinktest.Delivered(t, s, ds)
	require.False(t, early)
}

// A batch that fails behind another one's back, while the client writes it, is an empty request: Kafka 4 meets a null pointer in
// it, and never answers it nor what follows on the connection.
func TestDeliverBatch_BehindABatchNothingOfItsPartitionIsOnItsWay(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	produced := hear(cluster, kmsg.Produce)
	s := sinkOf(t, cluster, func(c *kafka.Config) { inBatches(c); c.Window = 100 })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	answerProduce(cluster, kerr.InvalidRecord, func(request *kmsg.ProduceRequest) bool {
		return bytes.Contains(request.Topics[0].Partitions[0].Records, []byte("poison"))
	})
	ds := withPayloads(sinktest.Deliveries(2, 60))
	for i := range ds { // the client does not make them smaller
		ds[i].Payload = fmt.Appendf(nil, "%q", incompressible()[:compressible])
	}
	ds[3].Payload = []byte(`"poison"`)
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 3, n)
	require.True(t, processor.IsPermanent(err), err)
	for _, request := range produced.all() {
		for _, batch := range batches(t, request) {
			require.Less(t, batch.NumRecords, int32(10))
			require.False(t, bytes.Contains(batch.Records, []byte(ds[10].DedupKey())))
		}
	}
}

func TestDeliverBatch_OfARefusedBatchTheRecordIsFound(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	answerProduce(cluster, kerr.InvalidRecord, func(request *kmsg.ProduceRequest) bool {
		return bytes.Contains(request.Topics[0].Partitions[0].Records, []byte("poison"))
	})
	ds := sinktest.Deliveries(1, 10)
	ds[6].Payload = []byte(`"poison"`)
	n, err := sinktest.Deliver(t, sinkOf(t, cluster, nil), ds)
	require.Equal(t, 6, n)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, `record "7"`)
}

// Whoever asks Kafka for the transactional id has it: nobody asks again before he
// has shown that he holds the lease, by the time that passes or by his epoch.
func TestFence_NobodyAsksAgainUnderTheEpochThatWasFenced(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	answerProduce(cluster, kerr.ProducerFenced, from(1))
	asked := hear(cluster, kmsg.InitProducerID)
	s := sinkOf(t, cluster, transactional)
	for range 3 {
		n, err := sinktest.Deliver(t, s, sinktest.Under(4, sinktest.Deliveries(1, 2)))
		require.Zero(t, n)
		require.ErrorContains(t, err, "another producer has taken its transactional_id")
		require.Greater(t, processor.RetryAfterDelay(err), 5*time.Second)
		require.False(t, outcome.IsUnknown(err), err)
		require.Len(t, asked.all(), 1)
	}
	_, err := sinktest.Deliver(t, s, sinktest.Under(5, sinktest.Deliveries(1, 2)))
	require.Error(t, err)
	require.Len(t, asked.all(), 2)
}

func TestDeliverBatch_ACommitWithoutAnAnswerIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	cluster.ControlKey(kmsg.EndTxn.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := request.ResponseKind().(*kmsg.EndTxnResponse)
		response.ErrorCode = kerr.CoordinatorNotAvailable.Code
		return response, nil, true
	})
	s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 5 * time.Second }) // it comes to the commit in that on a busy machine
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
	require.Zero(t, n)
	require.ErrorContains(t, err, "the commit may have happened")
	require.Equal(t, "outage", sinktest.Class(err), err)
}
