package rabbitmq

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

var _ sinks.Renderer = (*Sink)(nil)

// Render returns the message of a record. The properties message-id, type and timestamp repeat headers, and are left out.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	key, message, err := s.message(d)
	if err != nil {
		return sinks.Call{}, s.refusal(d, err)
	}
	call := sinks.Call{Target: fmt.Sprintf("exchange %q, routing key %q", s.config.Exchange, key), Headers: map[string]string{}, Body: message.Body}
	for name, value := range message.Headers {
		call.Headers[name] = fmt.Sprint(value)
	}
	return call, nil
}
