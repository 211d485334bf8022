package rabbitmq

import (
	"errors"
	"net/url"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// said is a text of the broker's in an error of ours.
type said string

func (s said) Error() string { return string(s) }

func newGuard(c Config) secret.Guard {
	var known []string
	if u, err := amqp.ParseURI(c.URL); err == nil {
		known = append(known, u.Password)
	}
	if u, err := url.Parse(c.URL); err == nil && u.User != nil {
		password, _ := u.User.Password()
		known = append(known, password)
	}
	g := secret.Guard{Secrets: secret.New(known...)}
	if c.HideAnswers {
		g.Words = words
	}
	return g
}

// words are the broker's in an error.
func words(err error) (all []string) {
	var answer *amqp.Error
	if errors.As(err, &answer) && answer.Server {
		all = append(all, answer.Reason)
	}
	var text said
	if errors.As(err, &text) {
		all = append(all, string(text))
	}
	return all
}
