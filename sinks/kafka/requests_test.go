package kafka

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The client's own formatter writes what is read.
func TestReadProduce_ReadsWhatTheClientWrites(t *testing.T) {
	t.Parallel()
	for version := int16(3); version <= kmsg.NewPtrProduceRequest().MaxVersion(); version++ {
		request := kmsg.NewPtrProduceRequest()
		request.SetVersion(version)
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID = "t", topicID{7}
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition, partition.Records = 3, []byte("records")
		topic.Partitions = append(topic.Partitions, partition)
		request.Topics = append(request.Topics, topic)
		for _, client := range []string{"ordered-dispatcher", ""} {
			written := kmsg.NewRequestFormatter(kmsg.FormatterClientID(client)).AppendRequest(nil, request, 5)
			read, ok := readProduce(written)
			require.True(t, ok, version)
			require.Equal(t, int32(3), read.Topics[0].Partitions[0].Partition)
			require.Equal(t, version >= 13, read.Topics[0].TopicID == topicID{7})
			require.Equal(t, version < 13, read.Topics[0].Topic == "t")
		}
	}
	metadata := kmsg.NewPtrMetadataRequest()
	read, ok := readProduce(kmsg.NewRequestFormatter().AppendRequest(nil, metadata, 5))
	require.True(t, ok)
	require.Nil(t, read)
}

// No order could be kept of what it has.
func TestWritten_ARequestWithRecordsThatCannotBeReadIsNotWritten(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var w written
	w.begin(cancel)
	w.release()
	for _, login := range []string{"short", "\x00\x00\x00\x09\x00u\x00password", "\x00\x00\x00\x20n,,n=user,r=nonce"} {
		_, ok := w.note(new(watched), []byte(login))
		require.True(t, ok, login)
	}
	require.NoError(t, context.Cause(ctx))
	_, ok := w.note(new(watched), []byte{0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 5, 0xff, 0xff, 9})
	require.False(t, ok)
	require.ErrorIs(t, context.Cause(ctx), errUnread)
	require.Equal(t, requests{}, w.end())
}

// produceOf is a request of the client with one batch.
func produceOf(epoch int16, sequence int32, transaction *string) []byte {
	batch := make([]byte, batchHead)
	batch[magicAt] = 2
	binary.BigEndian.PutUint16(batch[epochAt:], uint16(epoch))
	binary.BigEndian.PutUint32(batch[sequenceAt:], uint32(sequence))
	return requestOf(transaction, batch)
}

// requestOf is a request of the client with these records for its partitions.
func requestOf(transaction *string, records ...[]byte) []byte {
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(13)
	request.TransactionID = transaction
	topic := kmsg.NewProduceRequestTopic()
	for i, r := range records {
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition, partition.Records = int32(i), r
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	return kmsg.NewRequestFormatter().AppendRequest(nil, request, 5)
}

// What has been judged is not written any more, or "nothing was sent" would not be true.
func TestWritten_NothingIsWrittenBehindTheEndOfAWindow(t *testing.T) {
	t.Parallel()
	produce := produceOf(0, 0, nil)
	metadata := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 6)
	var w written
	w.begin(nil)
	w.release()
	back, ok := w.note(new(watched), produce)
	require.True(t, ok)
	back()
	require.Equal(t, requests{}, w.end())
	_, ok = w.note(new(watched), produce)
	require.False(t, ok)
	_, ok = w.note(new(watched), metadata)
	require.True(t, ok)
	w.begin(nil)
	w.release()
	_, ok = w.note(new(watched), produce)
	require.True(t, ok)
	require.Equal(t, requests{any: true}, w.end())
}

// The client may begin to send a window before it has all of it. Other requests of its are not held.
func TestWritten_NothingIsWrittenBeforeTheClientHasTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w written
		w.begin(nil)
		noted := make(chan bool, 2)
		for sequence := range int32(2) {
			go func() {
				_, ok := w.note(new(watched), produceOf(0, sequence, nil))
				noted <- ok
			}()
		}
		synctest.Wait()
		require.Empty(t, noted)
		_, ok := w.note(new(watched), kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 6))
		require.True(t, ok)
		w.release()
		require.True(t, <-noted)
		require.True(t, <-noted)
		require.Equal(t, requests{any: true}, w.end(), "each batch was sent once")

		w.begin(nil)
		go func() {
			_, ok := w.note(new(watched), produceOf(0, 2, nil))
			noted <- ok
		}()
		synctest.Wait()
		require.Empty(t, noted)
		require.Equal(t, requests{}, w.end())
		require.False(t, <-noted, "the window is over")
	})
}

// Kafka 4.3 meets a null pointer in it, and answers nothing more on the connection.
func TestWritten_APartitionWithoutRecordsIsNotWritten(t *testing.T) {
	t.Parallel()
	var w written
	w.begin(nil)
	w.release()
	for _, request := range [][]byte{requestOf(nil, nil), requestOf(nil, make([]byte, batchHead), nil)} {
		_, ok := w.note(new(watched), request)
		require.False(t, ok)
	}
	require.Equal(t, requests{}, w.end())
}

// The broker may have the batch under its old number, and would take it once more under the new one.
func TestWritten_ANewEpochAfterAMissingAnswerEndsTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times int
		lost  int64
		ends  bool
	}{
		"it was refused":    {times: 1},
		"an answer is lost": {times: 1, lost: 1, ends: true},
		"it went again":     {times: 2, ends: true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var w written
		w.begin(cancel)
		w.release()
		for range c.times {
			_, ok := w.note(new(watched), produceOf(3, 7, nil))
			require.True(t, ok, name)
		}
		w.lost.Store(c.lost)
		_, ok := w.note(new(watched), produceOf(4, 0, nil))
		require.Equal(t, c.ends, !ok, name)
		require.Equal(t, c.ends, context.Cause(ctx) == errRenumbered, name)
	}
}

// Where the client has a new epoch, the coordinator has aborted what was sent under the old one: the rest would be committed without it.
func TestWritten_ANewEpochEndsTheWindowOfATransaction(t *testing.T) {
	t.Parallel()
	id := "x"
	for _, transaction := range []*string{nil, &id} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var w written
		for epoch := int16(3); epoch < 5; epoch++ { // a commit makes one, too
			w.begin(cancel)
			w.release()
			_, ok := w.note(new(watched), produceOf(epoch, 7, transaction))
			require.True(t, ok)
			require.Equal(t, requests{any: true}, w.end())
		}
		w.begin(cancel)
		w.release()
		_, ok := w.note(new(watched), produceOf(5, 7, transaction))
		require.True(t, ok)
		_, ok = w.note(new(watched), produceOf(6, 0, transaction))
		require.Equal(t, transaction == nil, ok)
		require.Equal(t, requests{any: true}, w.end())
		if transaction != nil {
			require.ErrorIs(t, context.Cause(ctx), errForgotten)
		}
		cancel(nil)
	}
}

// A client that closes an idle connection has lost nothing, and goes on over another one. One that asks again over the same one may
// ask a broker that has followed another one meanwhile.
func TestWritten_AWindowHasMovedOverAnotherConnectionOrWhereItIsAskedForAgain(t *testing.T) {
	t.Parallel()
	batch := make([]byte, batchHead)
	batch[magicAt] = 2
	first, both := requestOf(nil, batch), requestOf(nil, batch, batch)
	commit := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrEndTxnRequest(), 6)
	one, another, later := new(watched), new(watched), &watched{later: true}
	var w written
	for i, c := range []struct {
		over     *watched
		requests [][]byte
		moved    bool
	}{
		{one, [][]byte{first}, false},
		{one, [][]byte{first}, false},
		{one, [][]byte{both, commit}, false},
		{another, [][]byte{first}, true},
		{another, [][]byte{first}, false},
		{another, [][]byte{both}, true}, // the second partition
		{another, [][]byte{both}, false},
		{another, [][]byte{commit}, true},
		{another, [][]byte{commit}, false},
		{another, [][]byte{first, first}, true},
		{another, [][]byte{commit, commit}, true},
		{another, [][]byte{both, commit}, false},
	} {
		require.Equal(t, c.moved, moves(t, &w, c.over, c.requests...), i)
	}
	require.True(t, moves(t, new(written), later, first), "the look of the link says nothing of it")
}

// moves sends a window, and reports whether it has moved.
func moves(t *testing.T, w *written, over *watched, requests ...[]byte) bool {
	t.Helper()
	w.begin(nil)
	w.release()
	for _, request := range requests {
		_, ok := w.note(over, request)
		require.True(t, ok)
	}
	return w.moved()
}
