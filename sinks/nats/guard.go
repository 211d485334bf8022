package nats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// said is an error that the server sends about a connection as a whole.
type said struct{ error }

func (s *said) Unwrap() error { return s.error }

// fixed lists errors of the client that contain no words of the server.
var fixed = []error{
	nats.ErrNoServers, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrTimeout,
	nats.ErrMaxConnectionsExceeded, nats.ErrMaxAccountConnectionsExceeded, nats.ErrStaleConnection, nats.ErrSecureConnWanted,
	nats.ErrSecureConnRequired, nats.ErrNoInfoReceived, nats.ErrNoResponders, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrBadHeaderMsg,
	io.EOF, context.Canceled, context.DeadlineExceeded, errLine, errElements, errSize, errHeaders, errSyntax,
}

// heard marks an error that the client made from the words of a server, unless it is known to contain none. A server
// may send anything in the place of the answer that the protocol expects.
func heard(err error) error {
	if err == nil || hasNoWords(err) {
		return err
	}
	return &said{err}
}

func hasNoWords(err error) bool {
	var address *net.OpError
	return slices.ContainsFunc(fixed, func(known error) bool { return err == known }) || errors.As(err, &address)
}

// undecoded marks an error of the client about an answer that it cannot decode. Its type may be any, and it may quote
// the answer.
func undecoded(err error) error {
	if _, ok := err.(jetstream.JetStreamError); ok || err == nil || hasNoWords(err) { // one that wraps such an error may have more words
		return err
	}
	return &of{err, "the answer is not the JSON that was expected"}
}

// guard keeps secrets out of errors: those in the configuration, and those in the login that connections read from a
// file, which may be renewed.
type guard struct {
	known []string
	hide  bool

	mu            sync.Mutex
	login, former []string
	now           secret.Guard
}

// learn takes the login of a connection. Another connection may still have the former login.
func (g *guard) learn(login []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Equal(g.login, login) {
		return
	}
	g.login, g.former = login, g.login
	g.now = secret.Guard{Secrets: secret.New(slices.Concat(g.known, g.login, g.former)...), Said: words, Hide: g.hide}
}

// Error masks an error as secret.Guard does.
func (g *guard) Error(err error) error { return g.of(nil).Error(err) }

// of returns the secret.Guard of a call with records.
func (g *guard) of(ds []processor.Delivery) secret.Guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now.Of(processor.Redact(ds))
}

func newGuard(c Config) *guard {
	known := []string{c.Password, c.Token}
	for _, server := range servers(c.URL) {
		u, err := url.Parse(server)
		if err != nil || u.User == nil {
			continue
		}
		password, ok := u.User.Password()
		if !ok { // a user without a password is a token
			password = u.User.Username()
		}
		known = append(known, password)
	}
	return &guard{known: known, hide: c.HideAnswers, now: secret.Guard{Secrets: secret.New(known...), Said: words, Hide: c.HideAnswers}}
}

// words finds the server's words in an error.
func words(err error) (hidden string, ok bool) {
	switch e := err.(type) { // each error of a chain is checked by itself
	case *said:
		return secret.Hidden, true
	case interface{ unsaid() string }:
		return e.unsaid(), true
	case jetstream.JetStreamError:
		api := e.APIError()
		if api == nil || api.Description == "" {
			return "", false
		}
		return fmt.Sprintf("nats: API error: code=%d err_code=%d description=%s", api.Code, api.ErrorCode, secret.Hidden), true
	default:
		return "", false
	}
}

// of is an error with the server's words about itself or about the stream, and the same error without them.
type of struct {
	error
	hidden string
}

func (o *of) Unwrap() error  { return o.error }
func (o *of) unsaid() string { return o.hidden }

// command is a command to be pasted, and the same command without the subjects that the server gives its stream.
type command struct{ of }

// Whole keeps secret.Guard from taking records out of it. Our own code has made it.
func (*command) Whole() {}
