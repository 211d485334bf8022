package kafka

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
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

// What cannot be read may have been anything.
func TestWritten_WhatCannotBeReadMayHaveBeenSentAgain(t *testing.T) {
	t.Parallel()
	var w written
	w.begin()
	require.Equal(t, requests{}, w.end())
	_, _ = w.note([]byte{0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 5, 0xff, 0xff, 9})
	require.Equal(t, requests{any: true, again: true}, w.end())
	w.begin()
	_, _ = w.note([]byte("short"))
	require.True(t, w.end().again)
}

// What has been judged is not written any more, or "nothing was sent" would not be true.
func TestWritten_NothingIsWrittenBehindTheEndOfAWindow(t *testing.T) {
	t.Parallel()
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(13)
	topic := kmsg.NewProduceRequestTopic()
	topic.Partitions = append(topic.Partitions, kmsg.NewProduceRequestTopicPartition())
	request.Topics = append(request.Topics, topic)
	produce := kmsg.NewRequestFormatter().AppendRequest(nil, request, 5)
	metadata := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 6)
	var w written
	w.begin()
	back, ok := w.note(produce)
	require.True(t, ok)
	back()
	require.Equal(t, requests{}, w.end())
	_, ok = w.note(produce)
	require.False(t, ok)
	_, ok = w.note(metadata)
	require.True(t, ok)
	w.begin()
	_, ok = w.note(produce)
	require.True(t, ok)
	require.Equal(t, requests{any: true}, w.end())
}

// produceOf is a request of the client with one batch of a partition.
func produceOf(sequence int32, records uint32) []byte {
	batch := make([]byte, batchHead)
	batch[magicAt] = 2
	binary.BigEndian.PutUint32(batch[sequenceAt:], uint32(sequence))
	binary.BigEndian.PutUint32(batch[countAt:], records)
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(13)
	topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	partition.Records = batch
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	return kmsg.NewRequestFormatter().AppendRequest(nil, request, 5)
}

// The client may send the beginning of a window before it has all of it. What is left goes out when the beginning is acknowledged.
func TestWritten_ASecondBatchOfAPartitionWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w written
		w.begin()
		_, ok := w.note(produceOf(0, 2))
		require.True(t, ok)
		_, ok = w.note(produceOf(0, 2))
		require.True(t, ok, "the client asks again for the same one")
		second := make(chan bool, 1)
		go func() {
			_, ok := w.note(produceOf(2, 3))
			second <- ok
		}()
		w.answer(nil)
		synctest.Wait()
		require.Empty(t, second, "one of two records is answered")
		w.answer(nil)
		require.True(t, <-second)
	})
}

// Where the beginning is refused it is sent again, and what is left would stand before it.
func TestWritten_ASecondBatchIsNotWrittenBehindARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w written
		w.begin()
		_, ok := w.note(produceOf(0, 1))
		require.True(t, ok)
		second := make(chan bool, 1)
		go func() {
			_, ok := w.note(produceOf(1, 3))
			second <- ok
		}()
		synctest.Wait()
		w.answer(kerr.MessageTooLarge)
		require.False(t, <-second)
		require.Equal(t, requests{any: true}, w.end(), "the first was sent once, the second never")

		w.begin()
		_, ok = w.note(produceOf(0, 1))
		require.True(t, ok)
		go func() {
			_, ok := w.note(produceOf(1, 3))
			second <- ok
		}()
		synctest.Wait()
		w.end()
		require.False(t, <-second, "the window is over")
	})
}
