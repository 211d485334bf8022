package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Config describes a stream. Zero values mean defaults.
type Config struct {
	// URL of the servers: nats://host:4222 or tls://host:4222, several with commas between them. The sink connects
	// only to these: other servers that a server names never get the login. It may hold user and password. Required.
	//
	// In the file: `nats://` or `tls://`, several servers with commas between. The sink dials only these, and not those
	// that a server names (`connect_urls`): list every server of a cluster. It may hold user and password.
	URL string `knob:"url" secret:"true" need:"url: \"nats://host:4222\""`
	// User is the name of a login with a password. At most one of user, token, credentials and nkey can be given.
	//
	// In the file: the name of a login with a password. At most one of `user`, `token`, `credentials` and `nkey` can be
	// given. From a `${file:…}` it may be [rotated](docs/operations.md#rotate-a-secret). Default: as in `url`.
	User string `knob:"user"`
	// Password of the user.
	//
	// In the file: the password of the user. It may be rotated as `user`.
	Password string `knob:"password" secret:"true"`
	// Token is a way to log in by itself.
	//
	// In the file: a login of its own. It may be rotated as `user`.
	Token string `knob:"token" secret:"true"`
	// Credentials is the path of a .creds file.
	//
	// In the file: the path of a `.creds` file. The sink reads it with every connection.
	Credentials string `knob:"credentials"`
	// NKey is the path of a file with a seed.
	//
	// In the file: the path of a file with a seed. The sink reads it with every connection.
	NKey string `knob:"nkey"`
	// TLS is demanded of every server. Default: for tls:// the system's roots, TLS 1.2 or later.
	//
	// In the file: files in PEM. With `tls`, the sink demands TLS of every server. Default: for `tls://` the system's
	// roots, TLS 1.2 or later.
	TLS *tls.Config `knob:"tls"`

	// Stream is the name of the stream. Required.
	//
	// In the file: the name of the stream.
	Stream string `knob:"stream" need:"stream: ORDERS"`
	// Subject is a template of tokens (see package route), such as orders.{{lower .Type}}. A value of a record is one
	// token, with %XX for each character that is neither a letter nor a digit. The result has at most 1,024 bytes, and
	// no wildcards. It must be one of the stream's subjects, and none of the server's own ($…, _INBOX). Required.
	//
	// In the file: a Go template over `.Process .Table .ID .Key .Type .Headers .DedupKey`, with `lower`, `upper`,
	// `replace`, `tokens`; see [below](#subjects).
	Subject string `knob:"subject" need:"subject: \"orders.{{.ID}}\""`
	// Fence is the template of the subject of the claims. Only .Process has a meaning in it. The stream has to take
	// that subject, and no one else may write to it.
	//
	// In the file: the subject of the [claims](docs/sinks/nats.md#the-fence), one for each process. Stop all its
	// workers before you change it.
	Fence string `knob:"fence" default:"ordered-fence.{{.Process}}"`
	// Declare makes the stream if it does not exist. nil: it must exist.
	//
	// In the file: makes the stream if it does not exist: on disk, kept without limits, with these subjects and the
	// fence's. The sink never changes a stream that exists. If several processes share a stream, give each of them the
	// subjects of all, and the fences of the others: `subjects: "orders.>,ordered-fence.p2"`. The first process to
	// deliver makes the stream. A process whose fence that stream does not take halts as *refused*. `doctor` warns of
	// that while there is no stream. The stream's sequences begin with the time in microseconds. If the stream is gone
	// later, a worker that has published there halts. A worker that has not reports it, and its next attempt makes the
	// stream. Default: the stream must exist.
	Declare *Declare `knob:"declare"`

	// Window is how many messages may wait for their acknowledgements at a time. Order holds for any; above 1 the
	// stream should have no other publisher.
	//
	// In the file: how many messages may wait for their acknowledgements at a time. It needs a `checkpoint` of at least
	// as many.
	Window int `knob:"window" default:"1" min:"1" max:"10_000"`
	// HideAnswers keeps the server's words out of errors. Secrets are kept out anyway.
	//
	// In the file: with `false`, errors quote only the server's code. The sink takes secrets out of errors in any case,
	// also the JWT and the seed of `credentials` and `nkey`.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
	// Timeout bounds connecting, and the wait for one acknowledgement.
	//
	// In the file: bounds making a connection, and waiting for one acknowledgement. A call with several records has
	// this time and 5 s for all of them, and at least 30 s. Records that are not acknowledged by then come again.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`

	exists    bool          // the stream is not made, whatever Declare is
	heartbeat time.Duration // 0 = the constant. Tests of a server that only seems silent wait longer
}

// Declare describes the stream to make: on disk, with the limits retention, and without any limit. An existing stream
// is never changed.
type Declare struct {
	// Subjects of the stream, besides the fence's. Required.
	//
	// In the file: the subjects of the stream, besides the fence's.
	Subjects []string `knob:"subjects" need:"subjects: \"orders.>\"" split:"true"`
	// Replicas of the stream.
	//
	// In the file: how many servers keep the stream.
	Replicas int `knob:"replicas" default:"1" min:"1" max:"5"`
	// DuplicateWindow is how long the server remembers a message's id.
	DuplicateWindow time.Duration `knob:"duplicate_window" default:"2m" min:"100ms" max:"720h"`
}

const fencePrefix = "ordered-fence."

// String names the servers and the stream, and hides everything else.
func (c Config) String() string { return fmt.Sprintf("stream %q of %s", c.Stream, target(c.URL)) }

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	if c.Declare != nil {
		d := *c.Declare // Fill must not write to the caller's
		c.Declare = &d
	}
	knob.Fill(&c)
	return c
}

// validate returns all faults at once, and quotes nothing that may be secret.
func (c Config) validate() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	fault(!validURL(c.URL), "url is missing or cannot be parsed: write it as nats://host:4222 or tls://host:4222, several with commas between")
	fault(c.identities() > 1, "user and password, token, credentials and nkey exclude each other: keep one")
	fault((c.User == "") != (c.Password == ""), "user and password go together")
	fault(!validStream(c.Stream), "stream %q is not the name of a stream: a name has no spaces and none of . * > / \\", c.Stream)
	_, err := route.Tokens(c.Subject)
	fault(err != nil, "subject: %w", err)
	fault(isInternal(c.Subject), "subject: %w", errInternal)
	_, err = route.Tokens(c.Fence)
	fault(err != nil, "fence: %w", err)
	fault(isInternal(c.Fence), "fence: %w", errInternal)
	fault(c.Fence == c.Subject, "fence is also the subject of the records: it needs a subject that nothing else is written to")
	if d := c.Declare; d != nil {
		fault(slices.Contains(d.Subjects, ""), "declare.subjects has an empty one: write those that the stream takes")
	}
	return errors.Join(faults...)
}

// identities counts the given ways to log in.
func (c Config) identities() (n int) {
	for _, given := range []bool{c.User != "" || c.Password != "", c.Token != "", c.Credentials != "", c.NKey != ""} {
		if given {
			n++
		}
	}
	return n
}

func validStream(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\r\n\f.*>/\\")
}

func validURL(raw string) bool {
	for _, server := range servers(raw) {
		u, err := url.Parse(server)
		if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || strings.Contains(u.EscapedPath(), "@") {
			return false // with an @ in the path, a password with a slash was not encoded
		}
	}
	return true
}

func servers(raw string) []string {
	all := strings.Split(raw, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// target is the part of the URLs that is not secret.
func target(raw string) string {
	var all []string
	for _, server := range servers(raw) {
		u, err := url.Parse(server)
		if err != nil {
			return "an invalid url"
		}
		all = append(all, (&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	}
	return strings.Join(all, ",")
}
