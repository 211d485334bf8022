package daemon

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
)

const pubsubKind = "pubsub"

// PubSubSink publishes to a topic of Google Cloud Pub/Sub, in a window of its own.
type PubSubSink struct{ Config pubsub.Config }

func parsePubSub(n yamlfile.Node) Sink {
	var c pubsub.Config
	m := n.Mapping("project", "topic", "ordering_key", "window", "timeout", "credentials", "endpoint", "tls", "emulator", "quote_answers")
	m.Read("project", func(n yamlfile.Node) { c.Project = n.Text() })
	if n, ok := m.Need("topic", "topic: orders"); ok {
		c.Topic = n.Text()
	}
	m.Read("ordering_key", func(n yamlfile.Node) { c.OrderingKey = n.Text() })
	m.Read("window", func(n yamlfile.Node) { c.Window = n.Int(1, pubsub.MaxWindow) })
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("credentials", func(n yamlfile.Node) { c.Credentials = n.Text() })
	m.Read("endpoint", func(n yamlfile.Node) { c.Endpoint = n.Text() })
	m.Read("tls", func(n yamlfile.Node) { c.TLS = parseTLS(n) })
	m.Read("emulator", func(n yamlfile.Node) { c.Emulator = n.Text() })
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if _, err := pubsub.New(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return PubSubSink{c}
}

// Kind is pubsub.
func (PubSubSink) Kind() string { return pubsubKind }

func (s PubSubSink) settings() map[string]string {
	return map[string]string{"target": s.Config.String()}
}

func (s PubSubSink) window() int { return s.Config.Window }

func (s PubSubSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openPipeline(d, s, func(s PubSubSink) (*pubsub.Sink, error) { return pubsub.New(s.Config) })
	return dispatch, windowTimeout(s.Config.Timeout), err
}

// receiverTime is for how long a check waits for a receiver: the checks behind it
// need the rest.
const receiverTime = 5 * time.Second

// examine looks at the topic.
func (s PubSubSink) examine(ctx context.Context, d *doctor, process string) error {
	sink, err := pubsub.New(s.Config)
	if err != nil {
		return err
	}
	defer func() { _ = sink.Close() }()
	ctx, cancel := context.WithTimeout(ctx, receiverTime)
	defer cancel()
	if err := sink.Check(ctx); err != nil {
		d.find(process, Refuse, "fix the sink or its topic as it says, then run doctor again", "%v", err)
	}
	return nil
}
