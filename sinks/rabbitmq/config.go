package rabbitmq

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Config describes an exchange. Zero values mean defaults.
type Config struct {
	// URL of the broker: amqp://user:password@host:5672/vhost, or amqps. Required.
	//
	// In the file: `amqp://` or `amqps://` (TLS 1.2 or later). User and password from a `${file:…}` may be
	// [rotated](docs/operations.md#rotate-a-secret).
	URL string `knob:"url" secret:"true" need:"url: \"amqp://user:${PASSWORD}@host:5672/vhost\""`
	// Exchange to publish to. "" is the default exchange, whose routing keys are the names of queues.
	//
	// In the file: the exchange that takes the messages. Default: `""`, the default exchange, at which the routing key
	// names a queue.
	Exchange string `knob:"exchange"`
	// Type of the exchange: direct, fanout, topic, headers, or a plugin's type x-…. The sink then declares it,
	// durable. "": it must exist.
	//
	// In the file: `direct`, `fanout`, `topic`, `headers` or `x-…`. With it, the sink declares the exchange, durable,
	// without arguments. (Make an exchange that needs some, as `x-delayed-message`, elsewhere.) Default: the exchange
	// must exist.
	Type string `knob:"type"`
	// RoutingKey is a template of tokens (see package route), such as {{lower .Type}}. A value of a record is one
	// word, with %XX for each character that is neither a letter nor a digit. The result has at most 255 bytes. At the
	// default exchange it does not begin with amq., the broker's own prefix.
	//
	// In the file: a Go template over `.Process .Table .ID .Key .Type .Headers .DedupKey`, with `lower`, `upper`,
	// `replace`, `tokens`; see [below](#routing-keys-and-headers). Default: `""`.
	RoutingKey string `knob:"routing_key"`
	// Window is how many publishings may wait for their confirms at a time. Above 1 a queue may show another order
	// after a refusal: see the package comment.
	//
	// In the file: how many messages may wait for their confirms at a time. It needs a `checkpoint` of at least as
	// many.
	Window int `knob:"window" default:"1" min:"1" max:"10_000"`
	// Timeout bounds making a connection, writing one message, and the wait for one confirm.
	//
	// In the file: bounds making a connection, writing one message, and waiting for one confirm. A call with several
	// records has this time and 5 s for all of them, and at least 30 s. When twice the time of the last confirm is more
	// than the time that is left, the sink sends nothing more, and the next call has the rest. That is not a failure.
	// Messages that are on their way and not acknowledged by the end come again.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	// HideAnswers keeps the broker's words out of errors. Secrets are kept out anyway.
	//
	// In the file: with `false`, errors quote only the broker's code. The sink takes secrets out of errors in any case.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
	// TLS of amqps. Default: the system's roots, TLS 1.2 or later.
	//
	// In the file: files in PEM for `amqps://`. Default: the system's authorities.
	TLS *tls.Config `knob:"tls"`
}

// shortString is how many bytes AMQP allows for names and most properties.
const shortString = 255

var exchangeTypes = []string{"", amqp.ExchangeDirect, amqp.ExchangeFanout, amqp.ExchangeTopic, amqp.ExchangeHeaders}

// String names the broker and the exchange, and hides everything else.
func (c Config) String() string { return fmt.Sprintf("exchange %q of %s", c.Exchange, target(c.URL)) }

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	return c
}

// validate returns all faults at once, and quotes nothing of the URL.
func (c Config) validate() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	u, err := amqp.ParseURI(c.URL)
	slipped := err == nil && strings.Contains(pathOf(c.URL), "@") // a password with a slash, whose end is taken for the vhost
	fault(c.URL != "" && (err != nil || slipped), "url cannot be parsed: write it as amqp://user:password@host:5672/vhost, percent-encode what is special in a password")
	fault(err == nil && c.TLS != nil && u.Scheme != "amqps", "tls is given, and the url is not amqps://")
	fault(len(c.Exchange) > shortString, "exchange has %d bytes, and AMQP keeps %d", len(c.Exchange), shortString)
	fault(!slices.Contains(exchangeTypes, c.Type) && !strings.HasPrefix(c.Type, "x-"), "type %q is not one of direct, fanout, topic, headers and x-…", c.Type)
	fault(c.Type != "" && (c.Exchange == "" || strings.HasPrefix(c.Exchange, "amq.")),
		"type is given, but exchange %q belongs to the broker and cannot be declared: leave type out", c.Exchange)
	_, err = route.Tokens(c.RoutingKey)
	fault(err != nil, "routing_key: %w", err)
	fault(c.Exchange == "" && c.RoutingKey == "", "exchange and routing_key are both empty: the default exchange takes the name of a queue as routing key")
	return errors.Join(faults...)
}

// pathOf returns the path of a URL as it is written.
func pathOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

// target is the part of a URL that is not secret, as people write it.
func target(raw string) string {
	u, err := amqp.ParseURI(raw)
	if err != nil {
		return "an invalid url"
	}
	host := net.JoinHostPort(u.Host, strconv.Itoa(u.Port))
	if u.Vhost == "/" { // the default, which people leave out
		return fmt.Sprintf("%s://%s/", u.Scheme, host)
	}
	return fmt.Sprintf("%s://%s/%s", u.Scheme, host, url.PathEscape(u.Vhost))
}
