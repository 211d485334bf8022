package watermill

import (
	"errors"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Config describes where records are published.
type Config struct {
	// Publisher must behave as the package comment asks. The caller closes it, after the last delivery. Required.
	Publisher message.Publisher
	// Topic is a template of tokens (see package route), such as bookings or bookings.{{lower .Type}}. A value of a
	// record is one token, with %XX for each character that is neither a letter nor a digit. Either it or TopicOf is
	// required.
	Topic string
	// TopicOf returns the topic of a record. An error is final: the record halts its process.
	TopicOf func(d processor.Delivery) (string, error)
}

// topicOf returns the function that finds topics, or all faults at once.
func (c Config) topicOf() (func(d processor.Delivery) (string, error), error) {
	var faults []error
	if c.Publisher == nil {
		faults = append(faults, errors.New("there is no Publisher"))
	}
	switch {
	case c.Topic == "" && c.TopicOf == nil:
		faults = append(faults, errors.New("there is no topic: give Topic or TopicOf"))
	case c.Topic != "" && c.TopicOf != nil:
		faults = append(faults, errors.New("there are two topics: give Topic or TopicOf"))
	}
	template, err := route.Tokens(c.Topic)
	if err != nil {
		faults = append(faults, err)
	}
	if c.TopicOf != nil {
		return c.TopicOf, errors.Join(faults...)
	}
	return template.Of, errors.Join(faults...)
}
