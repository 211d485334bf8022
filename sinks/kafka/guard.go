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

// words are what the client adds to a code of Kafka's: the broker's words on it.
func words(err error) (all []string) {
	for ; err != nil; err = errors.Unwrap(err) {
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
