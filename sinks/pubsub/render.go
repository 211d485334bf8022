package pubsub

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

var _ sinks.Renderer = (*Sink)(nil)

// Render returns the message of a record.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	m, err := s.message(d)
	if err != nil {
		return sinks.Call{}, fmt.Errorf("publish record %q to %s: %w", visible.Cut(d.ID), s, err)
	}
	return sinks.Call{Target: fmt.Sprintf("%s, ordering key %q", s.topic, m.OrderingKey), Headers: m.Attributes, Body: m.Data}, nil
}
