package kafka

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

const (
	// dedupHeader is the header name that consumers of outboxes look for.
	dedupHeader = "event_id"

	topicRule = "Kafka's topics have 1 to 249 letters, digits, '.', '_' and '-', and are not . or .."
	maxTopic  = 249

	internalRule = "topics that begin with _ belong to Kafka and its tools (__consumer_offsets, __transaction_state, _schemas)"
)

// message makes the message of a record. It returns a refusal if the protocol cannot carry the record.
func (s *Sink) message(d *processor.Delivery) (*kgo.Record, error) {
	topic, err := s.topic.Of(*d)
	if err != nil {
		return nil, &refusal{fmt.Errorf("its topic: %w", err)}
	}
	if !isTopic(topic) {
		return nil, &refusal{fmt.Errorf("its topic %.300q: %s; correct topic", s.topic.Shown(topic), topicRule)}
	}
	if strings.HasPrefix(topic, "__") || isInternal(topic) && !isInternal(s.config.Topic) {
		return nil, &refusal{fmt.Errorf("its topic %.300q: %s; correct topic, or skip the record", s.topic.Shown(topic), internalRule)}
	}
	if n := textSize(d); n > s.config.MaxBytes {
		return nil, &refusal{fmt.Errorf("it has %d bytes, headers included, and max_bytes is %d: %w", n, s.config.MaxBytes, kerr.MessageTooLarge)}
	}
	r := &kgo.Record{Topic: topic, Value: d.Payload, Headers: headers(d)}
	if d.Key != "" {
		r.Key = []byte(d.Key)
	}
	return r, nil
}

// textSize is the least size of a record in a batch, found without copying the record.
func textSize(d *processor.Delivery) int {
	n := len(d.Payload) + 2*len(d.Key) + len(d.Type) + len(d.ID)
	for name, value := range d.Headers {
		if !isOurs(name) {
			n += len(name) + len(value)
		}
	}
	return n
}

// headers returns the headers, with their values in one array.
func headers(d *processor.Delivery) []kgo.RecordHeader {
	all := make([]kgo.RecordHeader, 0, wire.Count+1+len(d.Headers))
	values := make([]byte, 0, 256)
	text := func(name, value string) {
		from := len(values)
		values = append(values, value...)
		all = append(all, kgo.RecordHeader{Key: name, Value: values[from:len(values):len(values)]})
	}
	text(dedupHeader, d.DedupKey())
	wire.Each(*d, text)
	for name, value := range d.Headers {
		if !isOurs(name) {
			text(name, value)
		}
	}
	return all
}

// isOurs reports whether a header of a record could be mistaken for one of ours.
func isOurs(name string) bool {
	return wire.Ours(name) || strings.EqualFold(name, dedupHeader)
}

// size is about the size of a message in a batch.
func size(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value) + 32
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 8
	}
	return n
}

// isInternal reports whether a topic is internal: a message in it is an order to the cluster or to its tools. Only
// the template's own text can name the topics of the tools, never a record.
func isInternal(topic string) bool { return strings.HasPrefix(topic, "_") }

func isTopic(name string) bool {
	if name == "" || len(name) > maxTopic || name == "." || name == ".." {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	}) < 0
}

// keyed puts records where their key leads, as Kafka's own clients do. Records without a key go where the name of
// their process leads, so that they keep their order.
type keyed struct{ kgo.TopicPartitioner }

func (k keyed) RequiresConsistency(*kgo.Record) bool { return true }

func (k keyed) Partition(r *kgo.Record, n int) int {
	if r.Key == nil {
		r = &kgo.Record{Key: processOf(r)}
	}
	return k.TopicPartitioner.Partition(r, n)
}

// processOf returns the name of the process that a record came from.
func processOf(r *kgo.Record) []byte {
	i := slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == wire.HeaderProcess })
	return r.Headers[i].Value
}

type partitioner struct{ kgo.Partitioner }

func newPartitioner() kgo.Partitioner { return partitioner{kgo.StickyKeyPartitioner(nil)} }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return keyed{p.Partitioner.ForTopic(topic)}
}
