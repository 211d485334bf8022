package kafka

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batchSent is a batch of records as a request has it. The client gives it a number once, and sends it again under that.
type batchSent struct {
	partitionSent
	epoch    int16
	sequence int32
}

// Where a batch has its numbers: see https://kafka.apache.org/documentation/#recordbatch.
const (
	magicAt    = 16
	epochAt    = 51
	sequenceAt = 53
	countAt    = 57
	batchHead  = 61
)

// batchesOf are the batches of a request, with how many records each has. One in the form of before Kafka 0.11 has no numbers.
func batchesOf(produce *kmsg.ProduceRequest) map[batchSent]int {
	all := map[batchSent]int{}
	for _, topic := range produce.Topics {
		for _, p := range topic.Partitions {
			b := batchSent{partitionSent: partitionSent{topic.Topic, topic.TopicID, p.Partition}}
			n := 0
			if len(p.Records) >= batchHead && p.Records[magicAt] >= 2 {
				b.epoch = int16(binary.BigEndian.Uint16(p.Records[epochAt:]))
				b.sequence = int32(binary.BigEndian.Uint32(p.Records[sequenceAt:]))
				n = int(int32(binary.BigEndian.Uint32(p.Records[countAt:])))
			}
			all[b] = n
		}
	}
	return all
}

// answer takes up what became of one record of the window.
func (w *written) answer(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered++
	w.refused = w.refused || err != nil
	w.changed.Broadcast()
}

// isSecond reports whether a request has another batch of a partition than the one that went there last in this window. The client
// makes two where it begins to send before it has the whole window: what is left of the window before may have it look.
func (w *written) isSecond(batches map[batchSent]int) bool {
	for b := range batches {
		if last, sent := w.last[b.partitionSent]; sent && last != b {
			return true
		}
	}
	return false
}

// await holds a request with a second batch back until all that was sent before it is answered, and reports whether it may be
// written: not where something was refused. Else records would land behind those that are sent again.
func (w *written) await(batches map[batchSent]int) bool {
	for !w.over && !w.refused && w.answered < w.records && w.isSecond(batches) {
		w.changed.Wait()
	}
	return !w.over && (!w.refused || !w.isSecond(batches))
}

// count takes up batches that are about to be written.
func (w *written) count(batches map[batchSent]int) {
	for b, n := range batches {
		if _, known := w.sent[b]; !known {
			w.records += n
		}
		w.sent[b]++
		w.last[b.partitionSent] = b
	}
}
