package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Config describes a cluster and a topic. Zero values mean defaults.
type Config struct {
	// Brokers to begin with, as host:port. The cluster names its other brokers. Required.
	//
	// In the file: a list of `host:port` at which the client begins. The cluster names its other brokers.
	Brokers []string `knob:"brokers" need:"brokers: [\"host:9092\", \"host:9092\"]"`
	// Topic is a template (see package route), such as {{lower .Type}}. The topics that it makes must exist. One
	// begins with _ only where the text of the template does: such topics belong to Kafka and its tools. Required.
	//
	// In the file: a Go template over `.Process .Table .ID .Key .Type .Headers .DedupKey`, with `lower`, `upper`,
	// `replace`. The topics must exist. A topic that begins with `_` belongs to Kafka or its tools
	// (`__consumer_offsets`, `_schemas`): a record that names one halts the process, unless `topic` itself begins with
	// `_`. A topic that begins with `__` is always refused.
	Topic string `knob:"topic" need:"topic: orders"`
	// Window is how many records may be on their way at a time: see the package comment.
	//
	// In the file: how many records may be on their way at a time, of `max_bytes` together at most. It needs a
	// `checkpoint` of at least as many.
	Window int `knob:"window" default:"1" min:"1" max:"10_000"`
	// MaxBytes bounds a batch, before compression, and so a record. Set it at or below the topic's max.message.bytes.
	//
	// In the file: the most bytes of a window before compression, and so of a record. Set it at or below the topic's
	// `max.message.bytes`.
	MaxBytes int `knob:"max_bytes" default:"1_000_000" min:"1_024" max:"67_108_864"`
	// Compression of the batches.
	//
	// In the file: compression of the batches:
	Compression string `knob:"compression" default:"snappy" oneof:"none gzip snappy lz4 zstd"`
	// TransactionalID makes each window a transaction, and lets Kafka refuse the producer that used the id before. Two
	// processes must not share one. Default: none.
	//
	// In the file: with it, each window is a transaction, and Kafka fences zombies. Give each process its own. Default:
	// none.
	TransactionalID string `knob:"transactional_id"`
	// Timeout bounds the wait for the acknowledgement of a window. If a connection has to be made first, both together
	// have this time. If less of it is left than the connection took, and less than 10 s, the next call sends.
	//
	// In the file: bounds waiting for the answers to a window. If a connection has to be made first, both together have
	// this time. If that took more than half of it, and less than 10 s are left, the sink sends nothing: the call
	// fails, the connection stays, and the next call sends.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	// HideAnswers keeps the broker's words out of errors. Secrets are kept out anyway.
	//
	// In the file: with `false`, errors quote only the broker's code, no name from its certificate, and no address that
	// is not one of `brokers`. The sink takes secrets out of errors in any case.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
	// SASL is how to log in. Default: not at all.
	//
	// In the file: how to log in. From a `${file:…}` the password may be [rotated](docs/operations.md#rotate-a-secret).
	// Default: no login.
	SASL SASL `knob:"sasl"`
	// TLS of the connections. Default: none, plain TCP.
	//
	// In the file: files in PEM. Write `{}` for the system's roots. Default: plain TCP.
	TLS *tls.Config `knob:"tls"`
}

// SASL is a user, and the way in which it proves its password.
type SASL struct {
	// Mechanism proves the password. "": no login.
	//
	// In the file: the mechanism of the login.
	Mechanism string `knob:"mechanism" oneof:"PLAIN SCRAM-SHA-256 SCRAM-SHA-512"`
	// User is the name of the login.
	User string `knob:"user"`
	// Password of the login.
	//
	// In the file: the password of the user.
	Password string `knob:"password" secret:"true"`
}

// maxID is how many bytes a string of Kafka may have.
const maxID = 1<<15 - 1

// String names the brokers and the topic, and hides everything else.
func (c Config) String() string {
	return fmt.Sprintf("topic %q of %s", c.Topic, strings.Join(c.Brokers, ","))
}

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

// String names the mechanism and hides everything else.
func (s SASL) String() string { return s.Mechanism }

// GoString is String, for the verb %#v.
func (s SASL) GoString() string { return s.String() }

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	return c
}

// validate returns all faults at once, and quotes no secret.
func (c Config) validate() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	for _, broker := range c.Brokers {
		host, port, err := net.SplitHostPort(broker)
		fault(err != nil || host == "" || port == "", "broker %q is not host:port", broker)
	}
	_, err := route.New(c.Topic)
	fault(err != nil, "topic: %w", err)
	fault(err == nil && c.Topic != "" && !strings.Contains(c.Topic, "{{") && !isTopic(c.Topic), "topic %q: %s", c.Topic, topicRule)
	fault(strings.HasPrefix(c.Topic, "__"), "topic %q: topics that begin with __ are Kafka's own", c.Topic)
	fault(len(c.TransactionalID) > maxID, "transactional_id has %d bytes, and Kafka takes %d", len(c.TransactionalID), maxID)
	return errors.Join(append(faults, c.SASL.validate())...)
}

func (s SASL) validate() error {
	switch {
	case s == SASL{}:
		return nil
	case s.Mechanism == "":
		return errors.New("sasl: the mechanism is missing: write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	case s.User == "" || s.Password == "":
		return errors.New("sasl: user and password are both needed")
	default:
		return nil
	}
}
