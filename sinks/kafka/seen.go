package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	// fetchBytes and partitionBytes bound one answer with batches. The first partition of a request is answered with a
	// whole batch, however large that is: see Config.answerBytes. Partitions for which there is no room are asked for again, first.
	fetchBytes, partitionBytes = maxAnswer / 4, 16 << 10

	// lookAgain is the pause before the sink looks again at partitions that have no leader, or a leader that has just
	// started.
	lookAgain = 100 * time.Millisecond

	// slack is how far a record's time may be outside the times of its batch: clocks are corrected between two
	// records.
	slack = time.Second
)

// mark is the last record that a partition has acknowledged: its place, and its batch's producer and time. The batch
// is enough, and need not be unpacked: another batch of the same producer, epoch and time cannot be at that offset.
type mark struct {
	spot
	offset   int64
	producer producer
	sent     time.Time
}

// spot names a partition.
type spot struct {
	topic     string
	partition int32
}

// markOf returns the place at which a record was acknowledged.
func markOf(r *kgo.Record) mark {
	return mark{spot{r.Topic, r.Partition}, r.Offset, producer{r.ProducerID, r.ProducerEpoch}, r.Timestamp}
}

// finding is the result of a look at a mark. The zero one means that nothing could be found out.
type finding struct {
	lost string // why the record is missing
	open bool   // it has to be looked at again
}

// look makes sure, before a new link sends anything, that the records which earlier links saw acknowledged are still
// there. The link's own producer begins anew, so the broker takes its records over any gap. Once others have written
// past the gap, the offsets show none. The sink waits once for partitions without a leader, for as long as the client
// waits for one. After that each window looks once.
func (s *Sink) look(ctx context.Context, epoch cursor.Epoch) error {
	l := s.link
	if len(l.unseen) == 0 {
		return s.stood.undecided(epoch)
	}
	missing, open := l.missing(ctx, l.unseen, s.config.patience(), !l.looked)
	for _, m := range l.unseen {
		if why := missing[m.spot]; why != "" && s.stood.topics[m.topic] != nil { // one partition of it is enough
			s.stood.missed(m, why, epoch)
		}
	}
	l.unseen, l.looked = open, true
	return s.stood.undecided(epoch)
}

// missing returns, for marks in one partition each, why their records are missing, and the marks that are still open.
// One look that does not find a record proves nothing. A broker that leads no more answers from its old log. A broker
// that has just begun to lead learns late which records all replicas have. So missing looks for a record until the
// patience ends. If wait is set, it also waits for partitions without a leader.
func (l *link) missing(ctx context.Context, marks []mark, patience time.Duration, wait bool) (why map[spot]string, open []mark) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	why, open = map[spot]string{}, slices.Clone(marks)
	for len(open) > 0 {
		found := l.find(ctx, open)
		if ctx.Err() != nil {
			break // an answer that did not come counts for nothing
		}
		before := len(open)
		open = slices.DeleteFunc(open, func(m mark) bool {
			f := found[m.spot]
			why[m.spot] = f.lost
			return f.lost == "" && !f.open
		})
		if len(open) < before {
			continue // for which there was no room before
		}
		absent := slices.ContainsFunc(open, func(m mark) bool { return why[m.spot] != "" })
		if !absent && !wait || !pause(ctx, lookAgain) {
			break
		}
	}
	maps.DeleteFunc(why, func(_ spot, text string) bool { return text == "" })
	return why, slices.DeleteFunc(open, func(m mark) bool { return why[m.spot] != "" })
}

// pause waits for d, and reports whether there is time for more after it.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// find asks the leaders of marks in one partition each.
func (l *link) find(ctx context.Context, marks []mark) map[spot]finding {
	found := map[spot]finding{}
	names := map[string]bool{}
	for _, m := range marks {
		found[m.spot], names[m.topic] = finding{open: true}, true
	}
	topics, err := l.describe(ctx, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return found
	}
	led := map[int32][]mark{}
	for _, m := range marks {
		topic := topics[m.topic]
		if leader, ok := topic.leaders[m.partition]; ok {
			led[leader] = append(led[leader], m)
		} else if topic.err != nil && !kerr.IsRetriable(topic.err) {
			found[m.spot] = finding{}
		}
	}
	for leader, marks := range led {
		if ctx.Err() == nil {
			l.ask(ctx, l.client.Broker(int(leader)), marks, topics, found)
		}
	}
	return found
}

// ask asks a leader where its logs end, and then for the batch at each mark before that end. It does not ask a broker
// again that is there and does not answer: this look must not keep anything from being sent.
func (l *link) ask(ctx context.Context, broker *kgo.Broker, marks []mark, topics map[string]described, found map[spot]finding) {
	ends, err := endsOf(ctx, broker, marks)
	var rest []mark
	for _, m := range marks {
		end, ok := ends[m.spot]
		switch {
		case err != nil:
			found[m.spot] = finding{open: isDial(err)}
		case !ok || end.err != nil:
			found[m.spot] = finding{open: kerr.IsRetriable(end.err)}
		case end.offset <= m.offset:
			found[m.spot] = finding{lost: fmt.Sprintf("its log ends before offset %d", end.offset)}
		default:
			rest = append(rest, m)
		}
	}
	if len(rest) == 0 {
		return
	}
	batches, err := fetch(ctx, broker, rest, topics)
	for _, m := range rest {
		batch, ok := batches[m.spot]
		switch {
		case err != nil:
			found[m.spot] = finding{open: isDial(err)}
		case !ok || batch.err != nil: // such as retention, or a missing right to read
			found[m.spot] = finding{open: kerr.IsRetriable(batch.err)}
		default:
			found[m.spot] = m.in(batch.records)
		}
	}
}

// requested asks twice: the first answer may come from a connection that ended while it was idle.
func requested(ctx context.Context, broker *kgo.Broker, request kmsg.Request) (kmsg.Response, error) {
	response, err := broker.Request(ctx, request)
	if err == nil || ctx.Err() != nil {
		return response, err
	}
	return broker.Request(ctx, request)
}

// end is the end of a partition's log.
type end struct {
	offset int64
	err    error
}

func endsOf(ctx context.Context, broker *kgo.Broker, marks []mark) (map[spot]end, error) {
	request := kmsg.NewPtrListOffsetsRequest()
	for _, m := range marks {
		topic := kmsg.NewListOffsetsRequestTopic()
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		topic.Topic, partition.Partition, partition.Timestamp = m.topic, m.partition, latest
		if n := len(request.Topics); n == 0 || request.Topics[n-1].Topic != m.topic {
			request.Topics = append(request.Topics, topic)
		}
		to := &request.Topics[len(request.Topics)-1]
		to.Partitions = append(to.Partitions, partition)
	}
	response, err := requested(ctx, broker, request)
	if err != nil {
		return nil, err
	}
	all := map[spot]end{}
	for _, topic := range response.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range topic.Partitions {
			all[spot{topic.Topic, p.Partition}] = end{p.Offset, kerr.ErrorForCode(p.ErrorCode)}
		}
	}
	return all, nil
}

// latest asks for the end of the part of a log that all in-sync replicas have.
const latest = -1

// fetched are batches of a partition.
type fetched struct {
	records []byte
	err     error
}

func fetch(ctx context.Context, broker *kgo.Broker, marks []mark, topics map[string]described) (map[spot]fetched, error) {
	request := kmsg.NewPtrFetchRequest()
	request.MaxBytes = fetchBytes
	names := map[topicID]string{}
	for _, m := range marks {
		topic := kmsg.NewFetchRequestTopic()
		partition := kmsg.NewFetchRequestTopicPartition()
		topic.Topic, topic.TopicID = m.topic, topics[m.topic].id
		partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = m.partition, m.offset, partitionBytes
		if n := len(request.Topics); n == 0 || request.Topics[n-1].Topic != m.topic {
			request.Topics = append(request.Topics, topic)
		}
		to := &request.Topics[len(request.Topics)-1]
		to.Partitions = append(to.Partitions, partition)
		names[topic.TopicID] = m.topic
	}
	response, err := requested(ctx, broker, request)
	if err != nil {
		return nil, err
	}
	all := map[spot]fetched{}
	for _, topic := range response.(*kmsg.FetchResponse).Topics {
		name := topic.Topic
		if topic.TopicID != (topicID{}) {
			name = names[topic.TopicID]
		}
		for _, p := range topic.Partitions {
			all[spot{name, p.Partition}] = fetched{p.RecordBatches, kerr.ErrorForCode(p.ErrorCode)}
		}
	}
	return all, nil
}

// in looks for a mark in the batches that the broker has from the mark's offset on.
func (m mark) in(batches []byte) finding {
	if len(batches) == 0 {
		return finding{open: true} // there was no room for it
	}
	for len(batches) >= batchHead && batches[magicAt] == 2 {
		number := func(at int) int64 { return int64(binary.BigEndian.Uint64(batches[at:])) }
		small := func(at int) int64 { return int64(int32(binary.BigEndian.Uint32(batches[at:]))) }
		first, last, length := number(0), number(0)+small(lastAt), lengthAt+4+small(lengthAt)
		switch {
		case first > m.offset: // it was compacted away
			return finding{}
		case last >= m.offset:
			attributes := batches[attributesAt+1]
			by := producer{number(producerAt), int16(binary.BigEndian.Uint16(batches[epochAt:]))}
			sent := attributes&timeOfBroker != 0 ||
				(attributes&deleteHorizon != 0 || m.sent.Add(slack).UnixMilli() >= number(firstTimeAt)) && m.sent.Add(-slack).UnixMilli() <= number(maxTimeAt)
			if by != m.producer || attributes&controlRecords != 0 || !sent {
				return finding{lost: "another record is there"}
			}
			return finding{}
		case length < batchHead || length > int64(len(batches)):
			return finding{}
		}
		batches = batches[length:]
	}
	return finding{}
}
