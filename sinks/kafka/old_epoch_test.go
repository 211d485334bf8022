package kafka_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The broker took the batch, perhaps, and said a word that may pass. When the batch goes again the client has taken a new epoch for another
// partition. There is no transactional_id that another producer could take, and the next call has a producer of its own.
func TestDeliverBatch_AnOldEpochWithoutATransactionalIDIsNoAttemptAndNoFence(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]*kerr.Error{
		"sent once":  {kerr.InvalidProducerEpoch},
		"sent twice": {kerr.KafkaStorageError, kerr.InvalidProducerEpoch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			for _, word := range words {
				answerOnce(cluster, word)
			}
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 4))
			require.Zero(t, n)
			require.ErrorIs(t, err, kerr.InvalidProducerEpoch)
			require.NotContains(t, err.Error(), "transactional_id")
			require.ErrorContains(t, err, "the next attempt has a producer id of its own")
			require.True(t, processor.IsUnreached(err), err)
			require.Zero(t, processor.RetryAfterDelay(err), err)
			require.Equal(t, len(words) > 1, outcome.IsUnknown(err), err)
			require.Equal(t, len(words) > 1, outcome.IsOutage(err), err)
			sinktest.Delivered(t, s, sinktest.Deliveries(2, 4)) // nothing keeps it away
		})
	}
}

// The answer to a commit is lost, and another producer has the transactional id when the client asks again.
func TestDeliverBatch_ACommitThatWasFencedWhenAskedForAgainIsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.ProducerFenced, kerr.InvalidProducerEpoch} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			cluster.ControlKey(kmsg.EndTxn.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, io.EOF, true })
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: code, Count: -1})
			s := sinkOf(t, cluster, func(c *kafka.Config) { transactional(c); c.Timeout = 20 * time.Second })
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorContains(t, err, "the commit may have happened")
			require.ErrorContains(t, err, "another producer has taken its transactional_id")
			require.ErrorIs(t, err, code)
			require.True(t, outcome.IsOutage(err), err)
			require.Equal(t, "outage", sinktest.Class(err), err)
			require.Greater(t, processor.RetryAfterDelay(err), 5*time.Second)
		})
	}
}
