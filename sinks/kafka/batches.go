package kafka

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batchSent is a batch of records as a request carries it. The client gives it a number once, and sends it again
// under that number.
type batchSent struct {
	partitionSent
	producer producer
	sequence int32
}

// producer is the id and epoch under whose numbers a batch is sent.
type producer struct {
	id    int64
	epoch int16
}

// Where the numbers of a batch are: see https://kafka.apache.org/documentation/#recordbatch.
const (
	lengthAt     = 8
	magicAt      = 16
	attributesAt = 21
	lastAt       = 23 // its last offset, counted from its first
	firstTimeAt  = 27
	maxTimeAt    = 35
	producerAt   = 43
	epochAt      = 51
	sequenceAt   = 53
	batchHead    = 61
)

// The attributes of a batch.
const (
	timeOfBroker   = 1 << 3
	controlRecords = 1 << 5
	// deleteHorizon: the log cleaner has replaced the first time of the batch by the time at which its tombstones are
	// removed.
	deleteHorizon = 1 << 6
)

// batchesOf returns the batches of a request. A batch in the format from before Kafka 0.11 has no numbers.
func batchesOf(produce *kmsg.ProduceRequest) (all []batchSent) {
	for _, topic := range produce.Topics {
		for _, p := range topic.Partitions {
			b := batchSent{partitionSent: partitionSent{topic.Topic, topic.TopicID, p.Partition}}
			if len(p.Records) >= batchHead && p.Records[magicAt] >= 2 {
				b.producer.id = int64(binary.BigEndian.Uint64(p.Records[producerAt:]))
				b.producer.epoch = int16(binary.BigEndian.Uint16(p.Records[epochAt:]))
				b.sequence = int32(binary.BigEndian.Uint32(p.Records[sequenceAt:]))
			}
			all = append(all, b)
		}
	}
	return all
}

// whole reports whether a request has records for each of its partitions. If a batch fails while the client writes a
// later batch of its partition, the client writes that one without records. Kafka 4.3 meets a null pointer in such a
// request, and answers nothing more on the connection.
func whole(produce *kmsg.ProduceRequest) bool {
	for _, topic := range produce.Topics {
		for _, p := range topic.Partitions {
			if len(p.Records) == 0 {
				return false
			}
		}
	}
	return true
}
