package pubsub

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Config describes a topic. Zero values mean defaults.
type Config struct {
	// Project of the topic. Required unless Topic is a whole name.
	//
	// In the file: the id of the project. Leave it out if `topic` is a whole name.
	Project string `knob:"project"`
	// Topic is its id, or its whole name: projects/PROJECT/topics/TOPIC. Required.
	//
	// In the file: the topic's id, or its whole name: `projects/PROJECT/topics/TOPIC`.
	Topic string `knob:"topic" need:"topic: orders"`
	// OrderingKey is a template (see package route). Its result has at most 1,024 bytes. Where the result is "", the
	// process's name is the key.
	//
	// In the file: a Go template over `.Process .Table .ID .Key .Type .Headers .DedupKey`, with `lower`, `upper`,
	// `replace`. If it makes an empty text, the key is the process's name.
	OrderingKey string `knob:"ordering_key" default:"{{.Key}}"`
	// Window is how many records may wait for an answer at a time. Above 1, records may land after a refused one that
	// has another ordering key: see the package comment. The maximum is how many messages Pub/Sub takes in a request.
	//
	// In the file: how many records may wait for an answer at a time. It needs a `checkpoint` of at least as many.
	Window int `knob:"window" default:"1" min:"1" max:"1_000"`
	// Timeout bounds making a connection and each request.
	//
	// In the file: bounds making a connection, and each request. A call with several records has this time and 5 s for
	// all of them, and at least 30 s. Records that are not acknowledged by then come again.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	// HideAnswers keeps the service's words out of errors. The secrets of Credentials are kept out anyway. The access
	// token that the client gets for them is not.
	//
	// In the file: with `false`, errors quote only the service's code. The sink takes the secrets of `credentials` out
	// of errors in any case. It does not take out the access token that the client gets for them, a login for an hour.
	// Set `false` if the server at `endpoint` may repeat that token.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
	// Credentials is the path of a file with credentials of Google Cloud. The sink reads it with every connection.
	// Default: Application Default Credentials.
	//
	// In the file: the path of a JSON file (a service account's key, workload identity). The sink reads it with every
	// connection. Default: Application Default Credentials.
	Credentials string `knob:"credentials"`
	// Endpoint is the host:port to publish at, with TLS. The order of an ordering key holds within one region. If
	// workers may run in several regions, name one, such as europe-west1-pubsub.googleapis.com:443. Default: the
	// nearest.
	//
	// In the file: `host:port`, with TLS. The order of an ordering key holds within one region. If workers may run in
	// several regions, name one, as `europe-west1-pubsub.googleapis.com:443`. Default: the nearest.
	Endpoint string `knob:"endpoint"`
	// TLS of the connection. Default: the system's roots.
	//
	// In the file: files in PEM. Default: the system's roots.
	TLS *tls.Config `knob:"tls"`
	// Emulator is the host:port of an emulator, reached without TLS and credentials. Default: none, or
	// PUBSUB_EMULATOR_HOST, which the client of Google Cloud obeys.
	//
	// In the file: `host:port`, without TLS and credentials. Default: `PUBSUB_EMULATOR_HOST`, if it is set.
	Emulator string `knob:"emulator"`
}

var topicName = regexp.MustCompile(`^projects/([^/\s]+)/topics/([^/\s]+)$`)

// String names the topic.
func (c Config) String() string { return c.name() }

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

// name is the topic's whole name.
func (c Config) name() string {
	if strings.Contains(c.Topic, "/") {
		return c.Topic
	}
	return fmt.Sprintf("projects/%s/topics/%s", c.Project, c.Topic)
}

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	return c
}

// validate returns all faults at once.
func (c Config) validate() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	whole := strings.Contains(c.Topic, "/")
	fault(whole && !topicName.MatchString(c.Topic), "topic %q is neither an id nor projects/PROJECT/topics/TOPIC", c.Topic)
	fault(!whole && c.Project == "", "project is missing: write the id of the project of Google Cloud that has the topic")
	fault(!whole && c.Project != "" && c.Topic != "" && !topicName.MatchString(c.name()), "topic %q of project %q is not the name of a topic", c.Topic, c.Project)
	fault(whole && c.Project != "" && !strings.HasPrefix(c.Topic, "projects/"+c.Project+"/"), "topic %[2]q belongs to another project than %[1]q: leave project out", c.Project, c.Topic)
	_, err := route.New(c.OrderingKey)
	fault(err != nil, "ordering_key: %w", err)
	fault(!isAddress(c.Endpoint), "endpoint %q is not host:port", c.Endpoint)
	fault(!isAddress(c.Emulator), "emulator %q is not host:port", c.Emulator)
	fault(c.Emulator != "" && (c.Endpoint != "" || c.Credentials != "" || c.TLS != nil),
		"emulator is given with endpoint, credentials or tls, which an emulator does not use: leave those out")
	return errors.Join(faults...)
}

func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	return text == "" || err == nil && host != "" && port != ""
}
