package watermill

import (
	"bytes"
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// namespace is the namespace of the UUIDs that are made of dedup keys. It is itself made of a URL, in the namespace
// of RFC 9562 for URLs. It must never change: otherwise receivers would take records that they have for new ones.
var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/ordered-dispatcher/ordered-dispatcher"))

// UUID returns the UUID of a record's message: of version 5, made of the dedup key. A dedup key itself would be too
// long for Publishers that keep 36 characters.
func UUID(d processor.Delivery) string {
	return uuid.NewSHA1(namespace, []byte(d.DedupKey())).String()
}

// newMessage makes a new message for each attempt: a Publisher and, within one program, its subscribers may change
// it.
func newMessage(ctx context.Context, d processor.Delivery) *message.Message {
	m := message.NewMessageWithContext(ctx, UUID(d), bytes.Clone(d.Payload))
	for name, value := range d.Headers {
		if !wire.Any(name) { // the Publisher may be of any kind
			m.Metadata.Set(name, value)
		}
	}
	wire.Each(d, m.Metadata.Set)
	// The span of the attempt, if there is one, or else the record's own trace.
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(m.Metadata))
	return m
}
