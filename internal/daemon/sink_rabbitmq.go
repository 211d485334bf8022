package daemon

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
)

const rabbitmqKind = "rabbitmq"

// RabbitMQSink publishes to an exchange, in a window of its own.
type RabbitMQSink struct{ Config rabbitmq.Config }

func parseRabbitMQ(n yamlfile.Node) Sink {
	var c rabbitmq.Config
	m := n.Mapping("url", "exchange", "type", "routing_key", "window", "timeout", "tls", "quote_answers")
	if n, ok := m.Need("url", `url: "amqp://user:${PASSWORD}@host:5672/vhost"`); ok {
		c.URL = n.Secret()
	}
	m.Read("exchange", func(n yamlfile.Node) { c.Exchange = n.Text() })
	m.Read("type", func(n yamlfile.Node) { c.Type = n.Text() })
	m.Read("routing_key", func(n yamlfile.Node) { c.RoutingKey = n.Text() })
	m.Read("window", func(n yamlfile.Node) { c.Window = n.Int(1, maxWindow) })
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("tls", func(n yamlfile.Node) { c.TLS = parseTLS(n) })
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if _, err := rabbitmq.New(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return RabbitMQSink{c}
}

// Kind is rabbitmq.
func (RabbitMQSink) Kind() string { return rabbitmqKind }

func (s RabbitMQSink) settings() map[string]string {
	return map[string]string{"target": s.Config.String()}
}

func (s RabbitMQSink) window() int { return s.Config.Window }

func (s RabbitMQSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openPipeline(d, s, func(s RabbitMQSink) (*rabbitmq.Sink, error) { return rabbitmq.New(s.Config) })
	return dispatch, windowTimeout(s.Config.Timeout), err
}
