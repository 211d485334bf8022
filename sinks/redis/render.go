package redis

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

var _ sinks.Renderer = (*Sink)(nil)

// Render returns the entry of a record: its fields are Headers, and the field payload is Body. It does not know how large
// a value the server takes.
func (s *Sink) Render(d processor.Delivery) (sinks.Call, error) {
	e, err := s.entry(d, 0)
	if err != nil {
		return sinks.Call{}, s.refusal(d, err)
	}
	call := sinks.Call{Target: "stream " + e.stream, Headers: map[string]string{}, Body: d.Payload}
	for i := 0; i+1 < len(e.fields); i += 2 {
		name, _ := e.fields[i].(string)
		if value, ok := e.fields[i+1].(string); ok { // the payload is bytes
			call.Headers[name] = value
		}
	}
	return call, nil
}
