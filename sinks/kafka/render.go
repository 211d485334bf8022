package kafka

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

var _ sinks.Renderer = (*Sink)(nil)

// Render returns the message of a record. Its key is part of the target, since it leads to the partition.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	r, err := s.message(&d)
	if err != nil {
		return sinks.Call{}, processor.Permanent(fmt.Errorf("send record %q to %s: %w", visible.Cut(d.ID), s, err))
	}
	call := sinks.Call{Target: "topic " + r.Topic, Headers: map[string]string{}, Body: r.Value}
	if r.Key != nil {
		call.Target += fmt.Sprintf(", key %q", r.Key)
	}
	for _, h := range r.Headers {
		call.Headers[h.Key] = string(h.Value)
	}
	return call, nil
}
