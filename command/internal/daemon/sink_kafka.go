package daemon

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
)

const kafkaKind = "kafka"

// KafkaSink sends to topics of a cluster, in a window of its own.
type KafkaSink struct{ Config kafka.Config }

func parseKafka(n yamlfile.Node) Sink {
	var c kafka.Config
	m := n.Mapping("brokers", "topic", "window", "max_bytes", "compression", "transactional_id", "timeout", "sasl", "tls", "quote_answers")
	if n, ok := m.Need("brokers", `brokers: ["host:9092", "host:9092"]`); ok {
		c.Brokers = n.List()
	}
	if n, ok := m.Need("topic", "topic: orders"); ok {
		c.Topic = n.Text()
	}
	m.Read("window", func(n yamlfile.Node) { c.Window = n.Int(1, kafka.MaxWindow) })
	m.Read("max_bytes", func(n yamlfile.Node) { c.MaxBytes = n.Int(1, kafka.MaxBytes) })
	m.Read("compression", func(n yamlfile.Node) { c.Compression = n.Text() })
	m.Read("transactional_id", func(n yamlfile.Node) { c.TransactionalID = n.Text() })
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("sasl", func(n yamlfile.Node) { c.SASL = parseSASL(n) })
	m.Read("tls", func(n yamlfile.Node) { c.TLS = parseTLS(n) })
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if _, err := kafka.New(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return KafkaSink{c}
}

func parseSASL(n yamlfile.Node) (s kafka.SASL) {
	m := n.Mapping("mechanism", "user", "password")
	m.Read("mechanism", func(n yamlfile.Node) { s.Mechanism = n.Text() })
	m.Read("user", func(n yamlfile.Node) { s.User = n.Text() })
	m.Read("password", func(n yamlfile.Node) { s.Password = n.Secret() })
	return s
}

// Kind is kafka.
func (KafkaSink) Kind() string { return kafkaKind }

func (s KafkaSink) settings() map[string]string {
	return map[string]string{"target": s.Config.String()}
}

func (s KafkaSink) window() int { return s.Config.Window }

func (s KafkaSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openPipeline(d, s, func(s KafkaSink) (*kafka.Sink, error) { return kafka.New(s.Config) })
	return dispatch, s.callTimeout(), err
}

// callTimeout leaves a window the time to end by its own time-out, which says more
// than that of the call: whether anything was sent.
func (s KafkaSink) callTimeout() time.Duration {
	timeout := s.Config.Timeout
	if timeout == 0 {
		timeout = kafka.DefaultTimeout
	}
	return min(timeout+callMargin, maxCallTime)
}
