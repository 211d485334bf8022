package rabbitmq

import (
	"fmt"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// maxHeaderBytes bounds the properties of a message, which travel in one frame. RabbitMQ's frames have 131,072 bytes
// unless it is configured otherwise.
const maxHeaderBytes = 100_000

// publishing makes the message of a record. It returns a Permanent error if the protocol cannot carry the record,
// which would close the connection at every attempt.
func publishing(d processor.Delivery) (amqp.Publishing, error) {
	headers := amqp.Table{}
	wire.Each(d, func(name, value string) { headers[name] = value })
	headers[wire.HeaderSequence], headers[wire.HeaderEpoch], headers[wire.HeaderAttempt] = d.Sequence, int64(d.Epoch), int32(d.Attempt)
	size := len(d.Key) + 2*len(d.Type) + 2*len(d.DedupKey()) + len(d.Position) + len(d.Process)
	for name, value := range d.Headers {
		switch {
		case name == "" || !isShort(name):
			return amqp.Publishing{}, refused("a header's name has %d bytes; AMQP takes 1 to %d, in UTF-8", len(name), shortString)
		case wire.Ours(name) || wire.AMQP(name):
			continue
		}
		headers[name] = value
		size += len(name) + len(value) + 6
	}
	if size > maxHeaderBytes {
		return amqp.Publishing{}, refused("its headers have %d bytes, and a frame of AMQP takes %d", size, maxHeaderBytes)
	}
	p := amqp.Publishing{
		ContentType:  "application/json",
		DeliveryMode: amqp.Persistent,
		MessageId:    wire.ShortKey(d, isShort),
		Headers:      headers,
		Body:         d.Payload,
	}
	if isShort(d.Type) {
		p.Type = d.Type
	}
	if d.CreatedAt.Unix() > 0 {
		p.Timestamp = time.Unix(d.CreatedAt.Unix(), 0) // AMQP carries seconds
	}
	return p, nil
}

// isShort reports whether a text fits the strings of most properties, which are short. Clients refuse a message in
// which one is not UTF-8. Values of headers may hold anything.
func isShort(text string) bool { return len(text) <= shortString && utf8.ValidString(text) }

func refused(format string, args ...any) error {
	return processor.Permanent(fmt.Errorf(format, args...))
}
