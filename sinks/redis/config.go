package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Config describes a stream. Zero values mean defaults.
type Config struct {
	// URL of the server: redis://user:password@host:6379/0, or rediss. Required.
	//
	// In the file: `redis://` or `rediss://` (TLS 1.2 or later), with the number of the database. It may hold user and
	// password.
	URL string `knob:"url" secret:"true" need:"url: \"redis://host:6379/0\""`
	// User is the name of a login. Default: as in URL; "" is Redis's user default.
	//
	// In the file: the name of a login. From a `${file:…}` it may be [rotated](docs/operations.md#rotate-a-secret).
	// Default: as in `url`.
	User string `knob:"user"`
	// Password of the user. Default: as in URL.
	//
	// In the file: the password of the user. It may be rotated as `user`. Default: as in `url`.
	Password string `knob:"password" secret:"true"`
	// TLS of rediss. Default: the system's roots, TLS 1.2 or later.
	//
	// In the file: files in PEM for `rediss://`. Default: the system's authorities.
	TLS *tls.Config `knob:"tls"`

	// Stream is a template of tokens (see package route) that makes the key of the stream, such as orders or
	// orders:{{lower .Type}}: a value of a record is one token, with %XX for what is neither a letter nor a digit.
	// Required.
	//
	// In the file: the key of the stream: a Go template over `.Process .Table .ID .Key .Type .Headers .DedupKey`, with
	// `lower`, `upper`, `replace`, `tokens`; see [below](#streams).
	Stream string `knob:"stream" need:"stream: orders"`
	// State is what the keys begin with under which Redis keeps how far each process is. Default: ordered-state.
	//
	// In the file: what the keys begin with under which Redis keeps [how far each process is](docs/sinks/redis.md#the-state).
	// Stop the workers before you change it, and rename the keys.
	State string `knob:"state" default:"ordered-state"`
	// MaxLen is about how many entries a stream keeps. Older ones are removed, read or not. 0: all.
	//
	// In the file: about how many entries a stream keeps. Redis removes older ones, read or not (`MAXLEN ~`). Default:
	// all.
	MaxLen int `knob:"max_len" min:"1" max:"1_000_000_000" like:"max_len: 1000000"`

	// Window is how many records go out together. Order holds for any.
	//
	// In the file: how many records go out together, as a pipeline. It needs a `checkpoint` of at least as many. Order
	// holds for any.
	Window int `knob:"window" default:"1" min:"1" max:"10_000"`
	// Timeout bounds connecting, and a pipeline from its first byte to its last answer.
	//
	// In the file: bounds making a connection, and a pipeline from its first byte to its last answer. A call with
	// several records has this time and 5 s for all of them, and at least 30 s.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	// HideAnswers keeps what Redis says out of errors. Secrets are kept out anyway.
	//
	// In the file: with `false`, errors quote only Redis's code. The sink takes secrets out of errors in any case.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
}

const (
	plainScheme, tlsScheme = "redis", "rediss"
	defaultPort            = "6379"
)

// server is what a URL says.
type server struct {
	scheme, host, port string
	database           int
	user, password     string
}

var errURL = errors.New("url cannot be parsed: write it as redis://host:6379/0 or rediss://…, percent-encode what is special in a password, and give no parameters")

// parse reads a URL. Its error quotes nothing of it.
func parse(text string) (server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != plainScheme && u.Scheme != tlsScheme || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return server{}, errURL
	}
	s := server{scheme: u.Scheme, host: u.Hostname(), port: defaultPort, user: u.User.Username()}
	s.password, _ = u.User.Password()
	if u.Port() != "" {
		s.port = u.Port()
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		if s.database, err = strconv.Atoi(path); err != nil || s.database < 0 {
			return server{}, errURL
		}
	}
	return s, nil
}

func (s server) address() string { return net.JoinHostPort(s.host, s.port) }

// String names the server without its login.
func (s server) String() string {
	return fmt.Sprintf("%s://%s/%d", s.scheme, s.address(), s.database)
}

// server is that of the URL, with the login that counts.
func (c Config) server() (server, error) {
	s, err := parse(c.URL)
	if c.User != "" {
		s.user = c.User
	}
	if c.Password != "" {
		s.password = c.Password
	}
	return s, err
}

// String names the server and the stream, and hides everything else.
func (c Config) String() string {
	s, err := c.server()
	if err != nil {
		return fmt.Sprintf("stream %q of an invalid url", c.Stream)
	}
	return fmt.Sprintf("stream %q of %s", c.Stream, s)
}

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	return c
}

// validate returns every fault at once, and quotes nothing of the URL.
func (c Config) validate() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	s, err := parse(c.URL)
	fault(c.URL != "" && err != nil, "%w", err)
	fault(err == nil && c.TLS != nil && s.scheme != tlsScheme, "tls is given, and the url is not rediss://")
	fault(s.user != "" && c.User != "" || s.password != "" && c.Password != "", "there are two logins: give user and password in url, or beside it")
	fault((c.User != "" || s.user != "") && c.Password == "" && s.password == "", "user is given, and no password")
	stream, err := route.Tokens(c.Stream)
	fault(err != nil, "stream: %w", err)
	fault(err == nil && stream.Fixed() && c.ofState(c.Stream), "stream %q begins with %q, as the keys of state do: give them different names", c.Stream, c.State)
	return errors.Join(faults...)
}

// ofState reports whether a key is one of those that the sink keeps for itself.
func (c Config) ofState(key string) bool {
	return key == c.State || strings.HasPrefix(key, c.State+":")
}
