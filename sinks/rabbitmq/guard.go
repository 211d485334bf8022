package rabbitmq

import (
	"fmt"
	"net/url"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// blocked is an alarm of the broker's, with its reason.
type blocked struct{ reason string }

func (b *blocked) Error() string { return b.because(b.reason) }

func (b *blocked) because(reason string) string {
	return fmt.Sprintf("the broker takes no messages (%s); free memory or disk there", visible.Line(reason))
}

// returned is a message that the broker sent back, with the broker's reason.
type returned struct {
	code uint16
	text string
}

func (r *returned) Error() string { return r.because(r.text) }

func (r *returned) because(text string) string {
	return fmt.Sprintf("the broker returned it: %d %s", r.code, visible.Line(text))
}

func newGuard(c Config) secret.Guard {
	var known []string
	if u, err := amqp.ParseURI(c.URL); err == nil {
		known = append(known, u.Password)
	}
	if u, err := url.Parse(c.URL); err == nil && u.User != nil {
		password, _ := u.User.Password()
		known = append(known, password)
	}
	return secret.Guard{Secrets: secret.New(known...), Said: said, Hide: c.HideAnswers}
}

// said finds the broker's words in an error.
func said(err error) (hidden string, ok bool) {
	switch e := err.(type) { // each error of a chain is checked by itself
	case *amqp.Error:
		return fmt.Sprintf(`Exception (%d) Reason: "%s"`, e.Code, secret.Hidden), e.Server
	case *blocked:
		return e.because(secret.Hidden), true
	case *returned:
		return e.because(secret.Hidden), true
	default:
		return "", false
	}
}
