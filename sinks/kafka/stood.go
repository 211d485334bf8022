package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	outcomes "github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// stood is what the topics have acknowledged to this sink, over all links. A client forgets it with its link, and the
// next client would accept a topic that was made anew without an error. The sink keeps it while other workers have
// the lease. If one of them has reported the same loss, this sink reports it again: it cannot know about that report,
// and silence would be worse.
type stood struct {
	topics map[string]*acknowledged
	// lost is why acknowledged records are missing; nil: no loss is known.
	lost error
	// epoch is the epoch of the record at which the loss was found. Every decision of an operator begins a larger one.
	epoch cursor.Epoch
}

// topicID is zero where the broker does not give one: before Kafka 2.8.
type topicID [16]byte

// acknowledged is what one topic has acknowledged.
type acknowledged struct {
	id topicID
	// last are the last records, by partition. With transactions only committed records count.
	last map[int32]mark
}

// place is where a record is in its topic.
type place struct {
	mark // its offset is below 0 where the broker did not give one
	// acknowledged is true once all in-sync replicas have the record; in a transaction, once it is committed.
	acknowledged bool
	err          error // of its record
}

// losses lists the broker's errors which mean that acknowledged records of a topic are missing.
//
// UNKNOWN_PRODUCER_ID is not among them. Brokers before Kafka 2.4 also answer it where retention has deleted all
// records of the producer, and kgo only sees that if others have written since. There the offsets prove a loss.
var losses = []*kerr.Error{kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.OutOfOrderSequenceNumber}

// undecided returns the loss that no operator has decided on yet.
func (s *stood) undecided(epoch cursor.Epoch) error {
	if epoch > s.epoch {
		s.lost = nil
	}
	return s.lost
}

// is notes the id of a topic. A different id than before proves a loss if records were acknowledged under the old
// one.
func (s *stood) is(topic string, id topicID, epoch cursor.Epoch) {
	was := s.of(topic)
	if id != was.id && id != (topicID{}) && was.id != (topicID{}) && len(was.last) > 0 {
		s.lose(topic, epoch, fmt.Errorf("topic %q has another id than when it acknowledged records: %s", topic, anewFix))
	}
	if id != (topicID{}) {
		s.of(topic).id = id
	}
}

// next notes where a record was acknowledged, and reports a loss. An offset that is not above the last one of the
// partition proves a loss. The client's own second request for a batch proves none: the broker answers it with the
// offset of that batch, which is above the offset before it.
func (s *stood) next(p place, epoch cursor.Epoch) bool {
	if p.offset < 0 {
		return false
	}
	last, lost := s.again(p)
	if lost {
		s.missed(last, fmt.Sprintf("a later record has %d", p.offset), epoch)
	}
	s.of(p.topic).last[p.partition] = p.mark
	return lost
}

// missed records the proof that an acknowledged record is missing.
func (s *stood) missed(m mark, why string, epoch cursor.Epoch) {
	s.lose(m.topic, epoch, fmt.Errorf("partition %d of topic %q has acknowledged offset %d, and %s: an older copy of the broker's data was put back, "+
		"the topic was made anew, or an unclean election lost what was acknowledged. Records are missing there: compare the topic with the table, and `seek` back to where they begin; "+
		"`retry` goes on without them", m.partition, m.topic, m.offset, why))
}

// again reports whether the offset of a record is not above the last one of its partition.
func (s *stood) again(p place) (last mark, again bool) {
	last, known := s.of(p.topic).last[p.partition]
	return last, known && p.offset <= last.offset
}

// marks returns the last records of all partitions, grouped by topic.
func (s *stood) marks() (all []mark) {
	for _, topic := range s.topics {
		all = slices.AppendSeq(all, maps.Values(topic.last))
	}
	return all
}

// older reports whether a place proves a loss, as next does, but records none.
func (s *stood) older(places []place) bool {
	return slices.ContainsFunc(places, func(p place) bool {
		_, again := s.again(p)
		return p.offset >= 0 && again
	})
}

// refused notes the broker's error about a record, and reports whether it proves a loss.
//
// OUT_OF_ORDER_SEQUENCE_NUMBER proves one where this link had acknowledgements in the partition. A link never lives
// as long as a broker keeps its numbers (see maxAge), and kgo hides the error where it only follows from an earlier
// batch that failed. A lost answer alone does not cause it: each partition has one batch on its way, or two in their
// order, and the broker knows them when they come again.
func (s *stood) refused(p place, l *link, epoch cursor.Epoch) bool {
	was := s.topics[p.topic]
	if was == nil || len(was.last) == 0 || !isOneOf(p.err, losses) {
		return false
	}
	if _, known := was.last[p.partition]; errors.Is(p.err, kerr.OutOfOrderSequenceNumber) && (!known || !l.topics[p.topic]) {
		return false
	}
	s.lose(p.topic, epoch, fmt.Errorf("%w: %s", p.err, lossOf(p.topic, p.err)))
	return true
}

// lossOf explains an error of losses, and gives the next step.
func lossOf(topic string, err error) string {
	switch {
	case errors.Is(err, kerr.UnknownTopicID):
		return anewFix
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Sprintf("topic %q has acknowledged records and is not there any more. If it was deleted, what was acknowledged and not read there is gone: "+
			"make it, and `seek` back to have it sent again, or `retry` to go on. If the broker only does not know the topic yet, `retry` is enough", topic)
	default:
		return fmt.Sprintf("the broker has lost what it had acknowledged in topic %q: compare the topic with the table, and `seek` back to where records are missing, or `retry` to go on", topic)
	}
}

// lose records a loss, and forgets the topic: the same loss is not found twice. One decision answers all known
// losses, so the error names them all.
func (s *stood) lose(topic string, epoch cursor.Epoch, why error) {
	delete(s.topics, topic)
	if before := s.undecided(epoch); before != nil {
		why = fmt.Errorf("%w; and %w", before, why)
	}
	s.lost, s.epoch = outcomes.ReportedOnce(why), epoch
}

func (s *stood) of(topic string) *acknowledged {
	if s.topics == nil {
		s.topics = map[string]*acknowledged{}
	}
	if s.topics[topic] == nil {
		s.topics[topic] = &acknowledged{last: map[int32]mark{}}
	}
	return s.topics[topic]
}
