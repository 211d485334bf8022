package kafka

import (
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

func newGuard(c Config) secret.Guard {
	g := secret.Guard{Secrets: secret.New(c.SASL.Password)}
	if c.HideAnswers {
		g.Words = words
	}
	return g
}

// said is a bare code of Kafka's. What we say around it is not taken for the broker's words then.
type said struct{ error }

func (s *said) Unwrap() error { return s.error }

// heard marks what the client says. It may be the bare code.
func heard(err error) error {
	if code, ok := err.(*kerr.Error); ok && code != nil {
		return &said{code}
	}
	return err
}

// quoting is an error of the client's with words of the broker's anywhere in it.
type quoting struct{ error }

func (q *quoting) Unwrap() error { return q.error }

// words are what the client adds to a code of Kafka's, the broker's words on it, and what quotes them.
func words(err error) (all []string) {
	for ; err != nil; err = errors.Unwrap(err) {
		if _, ok := err.(*quoting); ok {
			return append(all, err.Error())
		}
		code, ok := errors.Unwrap(err).(*kerr.Error)
		if !ok {
			continue
		}
		for _, part := range strings.Split(err.Error(), code.Error()) {
			all = append(all, strings.Trim(part, ": "))
		}
	}
	return all
}
