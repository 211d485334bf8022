package kafka

import (
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

func newGuard(c Config) secret.Guard {
	return secret.Guard{Secrets: secret.New(c.SASL.Password), Said: said, Hide: c.HideAnswers}
}

// bare is a code of Kafka without words of the broker. The text that we add around it is not taken for the broker's.
type bare struct{ error }

func (b *bare) Unwrap() error { return b.error }

// heard marks an error that the client returns. It may be the bare code.
func heard(err error) error {
	if code, ok := err.(*kerr.Error); ok && code != nil {
		return &bare{code}
	}
	return err
}

// quoting is an error of the client with words of the broker anywhere in it.
type quoting struct{ error }

func (q *quoting) Unwrap() error { return q.error }

// named is the reason why a connection failed to an address that the cluster gave. It has that address, so it quotes
// the cluster.
type named struct{ error }

func (n *named) Unwrap() error { return n.error }

// said finds the broker's words in an error: the client adds them to the code.
func said(err error) (hidden string, ok bool) {
	if _, ok := err.(*quoting); ok {
		return secret.Hidden, true
	}
	if _, ok := err.(*named); ok {
		return "an address that the cluster gives cannot be reached: " + secret.Hidden, true
	}
	code, ok := errors.Unwrap(err).(*kerr.Error)
	if !ok || !strings.HasPrefix(err.Error(), code.Error()+": ") {
		return "", false
	}
	return code.Error() + ": " + secret.Hidden, true
}
