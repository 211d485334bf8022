package nats

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

var _ sinks.Renderer = (*Sink)(nil)

// Render returns the message of a record, without its expectations of the stream.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	subject, err := s.subjectOf(d, "")
	if err != nil {
		return sinks.Call{}, err
	}
	m, err := message(d, subject, messageID(d))
	if err != nil {
		return sinks.Call{}, s.refusal(d, err)
	}
	call := sinks.Call{Target: "subject " + subject + ", stream " + s.config.Stream, Headers: map[string]string{}, Body: m.Data}
	for name := range m.Header {
		call.Headers[name] = m.Header.Get(name)
	}
	return call, nil
}
