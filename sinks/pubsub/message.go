package pubsub

import (
	"fmt"
	"unicode/utf8"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// The limits of Pub/Sub: https://cloud.google.com/pubsub/quotas#resource_limits.
const (
	maxRequestBytes   = 10_000_000
	maxAttributes     = 100
	maxAttributeName  = 256
	maxAttributeValue = 1024
	maxOrderingKey    = 1024

	// frame is more than the encoding adds to a message or a topic in a request.
	frame = 16
)

// message makes the message of a record. It returns a Permanent error if Pub/Sub cannot carry the record.
func (s *Sink) message(d processor.Delivery) (*pb.PubsubMessage, error) {
	key, err := s.key.Of(d)
	if err != nil {
		return nil, refused("its ordering key: %w", err)
	}
	if key == "" {
		key = d.Process // records without a key are in order among themselves
	}
	if err := checkText("its ordering key", key, maxOrderingKey); err != nil {
		return nil, err
	}
	attributes, err := attributes(d)
	if err != nil {
		return nil, err
	}
	m := &pb.PubsubMessage{Data: d.Payload, Attributes: attributes, OrderingKey: key}
	if size := size(m); size > s.room {
		return nil, refused("its message has %d bytes, and Pub/Sub takes requests of %d", size, maxRequestBytes)
	}
	return m, nil
}

func attributes(d processor.Delivery) (map[string]string, error) {
	all := make(map[string]string, wire.Count+len(d.Headers))
	for name, value := range d.Headers {
		if wire.Ours(name) || wire.PubSub(name) {
			continue
		}
		if name == "" {
			return nil, refused("a header has no name")
		}
		if err := checkText("a header's name", name, maxAttributeName); err != nil {
			return nil, err
		}
		all[name] = value
	}
	wire.Each(d, func(name, value string) { all[name] = value })
	all[wire.HeaderDedupKey] = wire.ShortKey(d, func(key string) bool { return checkText("", key, maxAttributeValue) == nil })
	for name, value := range all {
		if err := checkText(fmt.Sprintf("attribute %q", name), value, maxAttributeValue); err != nil {
			return nil, err
		}
	}
	if len(all) > maxAttributes {
		return nil, refused("it has %d attributes, and Pub/Sub takes %d", len(all), maxAttributes)
	}
	return all, nil
}

// size is the size of a message in a request, or a little more.
func size(m *pb.PubsubMessage) int { return proto.Size(m) + frame }

func checkText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return refused("%s has %d bytes, and Pub/Sub takes %d", what, len(text), most)
	case !utf8.ValidString(text):
		return refused("%s is not UTF-8", what)
	default:
		return nil
	}
}

func refused(format string, args ...any) error {
	return processor.Permanent(fmt.Errorf(format, args...))
}
