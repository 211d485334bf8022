package webhook

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// Format is the form of a request, apart from its payload.
type Format string

const (
	// Plain sends the payload with the headers of this package.
	Plain Format = ""
	// CloudEvents adds the attributes of CloudEvents 1.0 in binary mode. id is the value of Idempotency-Key. source is
	// "/" and the table. type is the record's type or, if it has none, the table. time is the record's time of
	// creation, if it has one.
	CloudEvents Format = "cloudevents"
	// CloudEventsStructured is the same event in structured mode. The body is the event as JSON. The payload's bytes
	// are in data, or, if they are not JSON, in data_base64.
	CloudEventsStructured Format = "cloudevents_structured"
)

// Config describes a webhook. Zero values mean defaults.
type Config struct {
	// URL to post to, http or https. A user and password in it are sent as basic authentication. Path and query may be
	// a template of package route, such as https://host/customers/{{.Key}}?type={{lower .Type}}: see the package
	// comment. Required.
	//
	// In the file: the address that the sink posts to: `http://` or `https://`. Path and query may be a
	// [template](docs/sinks/webhook.md#templates).
	URL string `knob:"url" secret:"true" need:"url: \"https://host/path\""`
	// Timeout bounds one request as a whole, from the name look-up to the end of the answer. A probe has as much time
	// of its own.
	Timeout time.Duration `knob:"timeout" default:"10s" min:"1ms" max:"1h"`
	// Secret signs every attempt by Standard Webhooks. It is "whsec_" and the base64 of the key, or else the key
	// itself. A key has 24 to 64 bytes. While a receiver changes over, give both secrets, separated by a space: each
	// attempt then carries a signature by each. Default: no signature.
	//
	// In the file: the sink signs each attempt as Standard Webhooks. A secret is `whsec_…` or a raw key of 24 to 64
	// bytes. With several, separated by spaces, the sink signs with each. From a `${file:…}` it may be
	// [rotated](docs/operations.md#rotate-a-secret). Default: no signature.
	Secret string `knob:"secret" secret:"true"`
	// Format of the request. Default Plain.
	//
	// In the file: `cloudevents` (binary mode) or `cloudevents_structured`. Default: the payload alone.
	Format Format `knob:"format" oneof:"cloudevents cloudevents_structured"`
	// Headers are sent with every attempt, for instance Authorization. Headers that this package or the transport sets
	// cannot be given.
	//
	// In the file: headers that the sink sends with every attempt. Those that the dispatcher sets cannot be given.
	// Default: none.
	Headers map[string]string `knob:"headers"`
	// Bearer is a token that is sent in Authorization.
	//
	// In the file: a token that the sink sends in `Authorization`. Instead, give `basic`, or a user in `url`. From a
	// `${file:…}` it may be [rotated](docs/operations.md#rotate-a-secret). Default: none.
	Bearer string `knob:"bearer" secret:"true"`
	// Basic is sent in Authorization.
	//
	// In the file: a user and a password that the sink sends in `Authorization`. From a `${file:…}` they may be
	// [rotated](docs/operations.md#rotate-a-secret). Default: none.
	Basic Basic `knob:"basic"`
	// TLS of https: your own authorities, a client certificate, another server name. Default: the system's roots. TLS
	// 1.2 or later, unless the field itself allows an earlier version.
	//
	// In the file: files in PEM for `https://`, TLS 1.2 or later. Default: the system's roots.
	TLS *tls.Config `knob:"tls"`
	// BlockPrivate refuses every address that is not public. It checks the address that is dialled. Addresses where
	// clouds keep their credentials are refused anyway.
	//
	// In the file: with `true`, the sink connects only to public addresses. It checks the address that it dials. It
	// refuses addresses where clouds keep their credentials in any case.
	BlockPrivate bool `knob:"block_private"`
	// HideAnswers keeps the receiver's words out of errors; only the status is named. Secrets, and the record that the
	// receiver echoes, are kept out anyway.
	//
	// In the file: with `false`, errors quote only the receiver's status. The sink takes secrets out of errors in any
	// case.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
	// Probe is how to ask the receiver for a record that it may already have (processor.Delivery.Unknown) before that
	// record is sent again. It is "GET " and a path and query at URL's host, a template like URL's, such as "GET
	// /records?key={{.DedupKey}}". The answer 2xx means that the receiver has the record, which then counts as
	// delivered. 404 and 410 mean that it has not. Default: never ask, send again.
	//
	// In the file: how the sink asks the receiver for a record that it may have already, before it sends the record
	// again: `GET /path?query` at the host of `url`, as a template that names the record. Default: the sink never asks.
	Probe string `knob:"probe" secret:"true"`
	// Secrets are the texts of references within URL and Probe: Exposures looks for them in the path.
	Secrets []string `references:"url,probe"`
}

// String names the receiver and hides everything else, since a configuration that is printed by accident holds
// secrets.
func (c Config) String() string { return "webhook to " + origin(c.URL) }

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	return c
}

// validate returns all faults at once. No fault quotes a value that may be a secret.
func (c Config) validate() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	to, err := parseTarget(c.URL)
	fault(err != nil, "url: %w", err)
	_, err = signature.Parse(c.Secret)
	fault(err != nil, "secret: %w", err)
	faults = append(faults, headerFaults(c.Headers)...)
	faults = append(faults, c.credentialFaults(to.base)...)
	fault(c.TLS != nil && to.base != nil && to.base.Scheme != "https", "tls is given, and the url is not https://")
	_, err = c.probe()
	fault(err != nil, "probe: %w", err)
	return errors.Join(faults...)
}
